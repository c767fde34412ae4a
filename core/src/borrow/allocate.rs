//! Fair division: a sum is divided in proportion to targets, each part between its bounds.
//!
//! The answer is the one proportion p for which the parts, p · target held between lower and upper bound, add up to
//! the sum. Source of the rule: `vectors/concalloc.jsonl`.

use std::fmt;

use super::order;

/// Targets below this count as this: with a target of 0 nothing could be in proportion to it.
const MIN_TARGET: f64 = 0.001;
/// Sums of bounds this close to the required sum are taken to equal it.
const EPSILON: f64 = 1e-7;
/// The proportion at which the search starts with no parts at all: an upper limit to what it is compared with.
const BEYOND_ALL_PROPORTIONS: f64 = f32::MAX as f64;

/// One part of a division.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// The part is at least this; not negative.
    pub lower: f64,
    /// The part is at most this; not below `lower`.
    pub upper: f64,
    /// The part is in proportion to this; not below `lower`, but maybe above `upper`.
    pub target: f64,
}

/// A division that adds up. See [`allocate`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allocation {
    /// What each part gets, in the order of the parts.
    pub amounts: Vec<f64>,
    /// Amount / target of every part that no bound holds.
    pub proportion: f64,
}

/// Why a sum cannot be divided. Where several reasons apply: the sum's sign, then the first part at fault, then the
/// sums of bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AllocationError {
    /// The sum is below 0.
    NegativeSum,
    /// The part with this index has a lower bound below 0.
    NegativeLowerBound(usize),
    /// The part with this index has a target below its lower bound.
    TargetBelowLower(usize),
    /// The part with this index has an upper bound below its lower bound.
    UpperBelowLower(usize),
    /// A lower bound is above its target after the rounding of tiny targets.
    LowerOverTarget,
    /// The lower bounds add up to this, more than the sum.
    LowerSumOver(f64),
    /// The upper bounds add up to this, less than the sum.
    UpperSumUnder(f64),
    /// No proportion was found within the bounds, which only numbers beyond the range of doubles can cause.
    OutOfBounds,
}

impl fmt::Display for AllocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllocationError::NegativeSum => write!(f, "the sum to divide is negative"),
            AllocationError::NegativeLowerBound(i) => write!(f, "part {i}: the lower bound is negative"),
            AllocationError::TargetBelowLower(i) => {
                write!(f, "part {i}: the target is below the lower bound")
            }
            AllocationError::UpperBelowLower(i) => {
                write!(f, "part {i}: the upper bound is below the lower bound")
            }
            AllocationError::LowerOverTarget => write!(f, "a lower bound is above its target"),
            AllocationError::LowerSumOver(sum) => {
                write!(f, "the lower bounds add up to {sum}, more than the sum to divide")
            }
            AllocationError::UpperSumUnder(sum) => {
                write!(f, "the upper bounds add up to {sum}, less than the sum to divide")
            }
            AllocationError::OutOfBounds => write!(f, "no proportion satisfies the bounds"),
        }
    }
}

impl std::error::Error for AllocationError {}

/// A proportion at which a part begins or ceases to grow.
#[derive(Clone, Copy)]
struct Turn {
    at: f64,
    /// What the turn adds to the sum of the targets of growing parts: the part's target, or minus it.
    target: f64,
    /// What the turn adds to the number of growing parts.
    count: i64,
}

/// Divides `sum` among `parts` in proportion to their targets, each within its bounds.
///
/// With no parts, or where the bounds leave no choice, the answer follows from the bounds. Where bounds tie, the last
/// bits of the answer may depend on the order of the parts. Allocates; takes time n · log n.
pub fn allocate(sum: i64, parts: &[Part]) -> Result<Allocation, AllocationError> {
    if sum < 0 {
        return Err(AllocationError::NegativeSum);
    }
    let required = sum as f64;
    let (mut lower_sum, mut upper_sum, mut target_sum) = (0.0, 0.0, 0.0);
    // Least and greatest proportion at which some part leaves its lower, reaches its upper bound.
    let (mut first_leaving, mut last_leaving) = (BEYOND_ALL_PROPORTIONS, 0.0_f64);
    let (mut first_reaching, mut last_reaching) = (BEYOND_ALL_PROPORTIONS, 0.0_f64);
    let mut turns = Vec::with_capacity(2 * parts.len());
    for (i, part) in parts.iter().enumerate() {
        if part.lower < 0.0 {
            return Err(AllocationError::NegativeLowerBound(i));
        }
        if part.target < part.lower {
            return Err(AllocationError::TargetBelowLower(i));
        }
        if part.upper < part.lower {
            return Err(AllocationError::UpperBelowLower(i));
        }
        let target = part.target.max(MIN_TARGET);
        lower_sum += part.lower;
        upper_sum += part.upper;
        target_sum += target;
        let (leaving, reaching) = (part.lower / target, part.upper / target);
        first_leaving = first_leaving.min(leaving);
        last_leaving = last_leaving.max(leaving);
        first_reaching = first_reaching.min(reaching);
        last_reaching = last_reaching.max(reaching);
        turns.push(Turn { at: leaving, target, count: 1 });
        turns.push(Turn { at: reaching, target: -target, count: -1 });
    }
    if last_leaving > 1.0 {
        return Err(AllocationError::LowerOverTarget);
    }
    if lower_sum - required > EPSILON {
        return Err(AllocationError::LowerSumOver(lower_sum));
    }
    if required - upper_sum > EPSILON {
        return Err(AllocationError::UpperSumUnder(upper_sum));
    }
    if sum == 0 {
        return Ok(Allocation { amounts: vec![0.0; parts.len()], proportion: 0.0 });
    }
    if lower_sum - required > -EPSILON {
        let amounts = parts.iter().map(|part| part.lower).collect();
        return Ok(Allocation { amounts, proportion: first_leaving });
    }
    if required - upper_sum > -EPSILON {
        let amounts = parts.iter().map(|part| part.upper).collect();
        return Ok(Allocation { amounts, proportion: last_reaching });
    }
    let unbound = required / target_sum;
    let proportion = if last_leaving <= unbound && unbound <= first_reaching {
        unbound
    } else {
        order::sort(&mut turns, |turn| turn.at);
        rise(required, lower_sum, first_leaving, &turns)?
    };
    let amounts = parts
        .iter()
        .map(|part| (proportion * part.target.max(MIN_TARGET)).min(part.upper).max(part.lower))
        .collect();
    Ok(Allocation { amounts, proportion })
}

/// Raises the proportion from `start`, where the parts add up to `sum`, from turn to turn until they add up to
/// `required`.
fn rise(required: f64, mut sum: f64, start: f64, turns: &[Turn]) -> Result<f64, AllocationError> {
    let mut proportion = start;
    let (mut growing_target, mut growing) = (0.0, 0);
    let mut next = 0;
    while sum < required {
        // All turns at this proportion bear on what follows it; they are summed one by one in their order, for the
        // doubles to cancel as they do in the reference.
        while turns.get(next).is_some_and(|turn| turn.at <= proportion) {
            growing_target += turns[next].target;
            growing += turns[next].count;
            next += 1;
        }
        let bound = turns.get(next).ok_or(AllocationError::OutOfBounds)?.at;
        if growing > 0 {
            let solution = proportion + (required - sum) / growing_target;
            if solution <= bound {
                return Ok(solution);
            }
            sum += (bound - proportion) * growing_target;
        }
        proportion = bound;
    }
    Ok(proportion)
}
