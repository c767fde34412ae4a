//! What is legal in a set of objects but surely not meant.

use maitred::api::v1::{FlowSchema, PriorityLevelConfiguration, QueuingConfiguration};
use maitred::api::{Object, Objects, builtin};
use maitred::borrow::CATCH_ALL;
use maitred::error::{Fault, FaultKind};
use maitred::shuffle::Deck;
use maitred_manifest::{Entry, duplicates};

use crate::cover;
use crate::input::add_missing;

/// Chance that one heavy flow holds all queues of a light one, above which settings are doubtful. Those that servers
/// suggest stay below.
const DOUBTFUL_CHANCE: f64 = 0.001;
/// Heavy flows against which the best hand size is looked for: with one alone it would be half of the queues.
const ELEPHANTS: u32 = 4;

/// Adds to every object that was accepted what is doubtful about it, in view of the others and of those that every
/// server has.
pub fn add_warnings(entries: &mut [Entry]) {
    let mut all: Objects =
        entries.iter().filter(|entry| entry.accepted()).filter_map(Entry::decoded).cloned().collect();
    add_missing(&mut all, builtin::mandatory());
    add_missing(&mut all, builtin::suggested());
    let mut twice = duplicates(entries);
    for entry in entries.iter_mut() {
        let (mine, others): (Vec<_>, _) =
            twice.into_iter().partition(|fault| fault.at.as_ref() == Some(&entry.place_of("metadata.name")));
        twice = others;
        let mut found = mine;
        match entry.decoded().filter(|_| entry.accepted()) {
            Some(Object::FlowSchema(schema)) => found.extend(schema_warnings(entry, schema, &all)),
            Some(Object::PriorityLevelConfiguration(level)) => found.extend(level_warnings(entry, level)),
            None => {}
        }
        entry.warnings.extend(found);
        entry.warnings.sort_by_key(|fault| fault.at.as_ref().map(|at| (at.line, at.column)));
    }
}

fn schema_warnings(entry: &Entry, schema: &FlowSchema, all: &Objects) -> Vec<Fault> {
    let mut found = Vec::new();
    let level = &schema.spec.priority_level_configuration.name;
    if all.priority_levels.iter().all(|known| known.metadata.name != *level) {
        let detail = "no such level in these files, nor one that every server has: the schema will be ignored (Dangling)";
        let fault = entry.fault(FaultKind::NotFound, "spec.priorityLevelConfiguration.name", detail);
        found.push(fault.with_value(level.as_str()));
    }
    if schema.spec.rules.is_empty() {
        found.push(entry.fault(
            FaultKind::Invalid,
            "spec.rules",
            "without rules the schema matches no request",
        ));
    } else if let Some(earlier) = covering(schema, all).filter(|_| schema.metadata.name != CATCH_ALL) {
        // Of catch-all nothing else is expected: schemas before it take everything, those that servers suggest, too.
        let detail = format!(
            "can never match: \"{}\" with precedence {} comes first and matches all that this does",
            earlier.metadata.name, earlier.spec.matching_precedence
        );
        let fault = entry.fault(FaultKind::Invalid, "spec.matchingPrecedence", detail);
        found.push(fault.with_value(schema.spec.matching_precedence));
    }
    for (rule_index, rule) in schema.spec.rules.iter().enumerate() {
        for (index, part) in rule.resource_rules.iter().enumerate() {
            for (place, resource) in
                part.resources.iter().enumerate().filter(|(_, text)| text.len() > 1 && text.contains('*'))
            {
                let path = format!("spec.rules[{rule_index}].resourceRules[{index}].resources[{place}]");
                let detail = "matches nothing: only a `*` alone stands for other resources";
                found.push(entry.fault(FaultKind::Invalid, &path, detail).with_value(resource.as_str()));
            }
        }
        for (index, subject) in rule.subjects.iter().enumerate() {
            let wider = rule.subjects.iter().enumerate().position(|(other, wider)| {
                other != index
                    && cover::subject(wider, subject)
                    // Of two that say the same, the later one is too much.
                    && (other < index || !cover::subject(subject, wider))
            });
            if let Some(wider) = wider {
                let path = format!("spec.rules[{rule_index}].subjects[{index}]");
                let detail =
                    format!("needless: subjects[{wider}] of the same rule matches all that this does");
                found.push(entry.fault(FaultKind::Duplicate, &path, detail));
            }
        }
    }
    found
}

/// The one schema before `schema` that leaves it nothing.
fn covering<'a>(schema: &FlowSchema, all: &'a Objects) -> Option<&'a FlowSchema> {
    let place = |schema: &FlowSchema| (schema.spec.matching_precedence, schema.metadata.name.clone());
    let levels = &all.priority_levels;
    let dangling = |other: &FlowSchema| {
        levels.iter().all(|level| level.metadata.name != other.spec.priority_level_configuration.name)
    };
    let mut earlier =
        all.flow_schemas.iter().filter(|other| place(other) < place(schema) && !dangling(other));
    earlier.find(|other| cover::schema(other, schema))
}

fn level_warnings(entry: &Entry, level: &PriorityLevelConfiguration) -> Vec<Fault> {
    let response = level.spec.limited.as_ref().map(|limited| &limited.limit_response);
    let Some(queuing) = response.and_then(|response| response.queuing.as_ref()) else { return Vec::new() };
    let QueuingConfiguration { queues, hand_size, .. } = *queuing;
    let chance = |hand_size, elephants| Some(Deck::new(queues, hand_size).ok()?.chance_all_shared(elephants));
    // One queue is no sharding at all, which is a choice.
    let Some(found) = chance(hand_size, 1).filter(|chance| queues > 1 && *chance > DOUBTFUL_CHANCE) else {
        return Vec::new();
    };
    let hands = (1..=queues.min(20)).filter_map(|hand| Some((hand, chance(hand, ELEPHANTS)?)));
    let best = hands.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(hand, _)| hand);
    let advice = match best.and_then(|hand| Some((hand, chance(hand, 1)?))) {
        Some((hand, best)) if best <= DOUBTFUL_CHANCE => {
            format!("with a handSize of {hand} it is {}", percent(best))
        }
        _ => "use more queues".to_owned(),
    };
    let detail = format!(
        "of {queues} queues: a heavy flow holds all queues of a light one with a chance of {}; {advice}",
        percent(found)
    );
    let path = "spec.limited.limitResponse.queuing.handSize";
    vec![entry.fault(FaultKind::Invalid, path, detail).with_value(hand_size)]
}

fn percent(chance: f64) -> String {
    let percent = chance * 100.0;
    if percent >= 0.01 { format!("{percent:.2} %") } else { format!("{percent:.1e} %") }
}
