//! Runs the command as a user does.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// What a run left behind.
pub struct Run {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    #[allow(dead_code, reason = "not every test file looks at it")]
    pub err: String,
}

/// Runs `maitred` in the tests' folder with `input` on standard input.
pub fn maitred_with(arguments: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_maitred"))
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that does not read its input closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs `maitred` in the tests' folder.
pub fn maitred(arguments: &[&str]) -> Run {
    maitred_with(arguments, "")
}

/// The JSON that a run prints.
#[allow(dead_code, reason = "not every test file looks at it")]
pub fn json(arguments: &[&str]) -> serde_json::Value {
    let run = maitred(&[arguments, &["--output", "json"]].concat());
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err))
}
