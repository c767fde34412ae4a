//! Values that the server fills in where an object leaves them out.
//!
//! Source: the API reference of v1, and `validate.jsonl`. Texts and enumerations have no defaults, and neither has an
//! absent `limited`, `exempt` or `queuing`.

use super::{Object, v1};

/// `matchingPrecedence` of a flow schema.
pub const MATCHING_PRECEDENCE: i32 = 1000;
/// Shares of a Limited level. (Those of an Exempt level are 0.)
pub const CONCURRENCY_SHARES: i32 = 30;
/// Number of queues of a level.
pub const QUEUES: i32 = 64;
/// Queues that one flow may use.
pub const HAND_SIZE: i32 = 8;
/// Requests that may wait in one queue.
pub const QUEUE_LENGTH_LIMIT: i32 = 50;

/// Fills in every absent value that has a default.
pub fn apply(object: &mut Object) {
    match object {
        Object::FlowSchema(schema) => {
            or_default(&mut schema.spec.matching_precedence, MATCHING_PRECEDENCE);
        }
        Object::PriorityLevelConfiguration(level) => {
            if let Some(exempt) = &mut level.spec.exempt {
                exempt.nominal_concurrency_shares.get_or_insert(0);
                exempt.lendable_percent.get_or_insert(0);
            }
            if let Some(limited) = &mut level.spec.limited {
                limited.nominal_concurrency_shares.get_or_insert(CONCURRENCY_SHARES);
                limited.lendable_percent.get_or_insert(0);
                limited.limit_response.queuing.as_mut().map(queuing);
            }
        }
    }
}

fn queuing(queuing: &mut v1::QueuingConfiguration) {
    or_default(&mut queuing.queues, QUEUES);
    or_default(&mut queuing.hand_size, HAND_SIZE);
    or_default(&mut queuing.queue_length_limit, QUEUE_LENGTH_LIMIT);
}

/// The API cannot tell a zero from an absent number here.
fn or_default(value: &mut i32, default: i32) {
    if *value == 0 {
        *value = default;
    }
}
