//! One module a vector file (or family of files). Each exports `run(&Path) -> anyhow::Result<Outcome>`.
