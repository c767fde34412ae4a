//! The policy: a whole set of objects, compiled. Immutable; whoever reconfigures compiles another.
//!
//! Compiling allocates and checks; from [`Policy::classify`] on nothing does either. A policy may be shared by any
//! number of threads. Sources of the rules: `vectors/match.jsonl` for schemas, `vectors/limits.jsonl` for seats.

mod level;
mod resolver;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub use level::{Level, LevelKind};
pub use resolver::Resolver;

use crate::{
    api::{Objects, builtin, v1},
    borrow::{CATCH_ALL, EXEMPT, LevelSpec, Limits},
    classify::{Classified, Request, index::Index},
    error::{Fault, FaultKind},
    fidelity::Fidelity,
    flow::{Distinguisher, Flow, FlowHasher},
    shuffle::{Deck, Hand},
};

/// A flow schema in force.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Name of the object.
    pub name: Arc<str>,
    /// `matchingPrecedence`.
    pub precedence: i32,
    /// Index of its level in [`Policy::levels`].
    pub level: u32,
    /// How its requests are told apart into flows.
    pub distinguisher: Distinguisher,
    /// There is no such object: it is mandatory, and imagined.
    pub imagined: bool,
    /// What the object says.
    pub spec: v1::FlowSchemaSpec,
}

/// A flow schema that takes no part, because the level that it names does not exist.
#[derive(Debug, Clone)]
pub struct Dangling {
    /// Name of the object.
    pub name: Arc<str>,
    /// What it says, the name of the missing level included.
    pub spec: v1::FlowSchemaSpec,
}

/// A compiled set of objects.
#[derive(Debug)]
pub struct Policy {
    schemas: Box<[Schema]>,
    levels: Box<[Level]>,
    dangling: Box<[Dangling]>,
    server_concurrency_limit: u32,
    /// Index of the schema that takes what no schema matches.
    catch_all: u32,
    index: Index,
}

impl Policy {
    /// Compiles objects that have their defaults, for a server with that many seats.
    ///
    /// Mandatory schemas and levels are imagined where there is no object for them: the exempt schema before all others,
    /// catch-all behind them. A schema whose level does not exist takes no part and is listed as
    /// [dangling](Policy::dangling).
    ///
    /// The objects are taken as validated ([`validate`](crate::api::validate())). What validation would refuse and cannot be
    /// acted upon is a fault here too, all faults at once; other shapes that it refuses are matched as the reference
    /// would match them.
    pub fn compile(objects: &Objects, server_concurrency_limit: u32) -> Result<Policy, Vec<Fault>> {
        let mut faults = duplicates(objects);
        let mandatory = builtin::mandatory();
        let levels = levels(objects, &mandatory, server_concurrency_limit, &mut faults);
        let by_name: BTreeMap<&str, u32> = levels.iter().map(|level| &*level.name).zip(0..).collect();
        let (mut schemas, mut dangling) = (Vec::new(), Vec::new());
        for object in &objects.flow_schemas {
            let distinguisher = distinguisher(object, &mut faults);
            let name = Arc::from(object.metadata.name.as_str());
            let spec = object.spec.clone();
            match by_name.get(spec.priority_level_configuration.name.as_str()) {
                None => dangling.push(Dangling { name, spec }),
                Some(&level) => schemas.push(Schema {
                    name,
                    precedence: spec.matching_precedence,
                    level,
                    distinguisher,
                    imagined: false,
                    spec,
                }),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
        for object in mandatory.flow_schemas {
            if schemas.iter().any(|schema| *schema.name == object.metadata.name) {
                continue;
            }
            let schema = Schema {
                name: object.metadata.name.as_str().into(),
                precedence: object.spec.matching_precedence,
                level: by_name[object.spec.priority_level_configuration.name.as_str()],
                distinguisher: if object.metadata.name == CATCH_ALL {
                    Distinguisher::ByUser
                } else {
                    Distinguisher::None
                },
                imagined: true,
                spec: object.spec,
            };
            // An imagined schema is not sorted in: the reference puts it at the very end or the very beginning.
            let at = if &*schema.name == EXEMPT { 0 } else { schemas.len() };
            schemas.insert(at, schema);
        }
        let catch_all =
            schemas.iter().position(|schema| &*schema.name == CATCH_ALL).unwrap_or(schemas.len() - 1);
        Ok(Policy {
            index: Index::new(schemas.iter().map(|schema| &schema.spec)),
            schemas: schemas.into(),
            levels: levels.into(),
            dangling: dangling.into(),
            server_concurrency_limit,
            catch_all: catch_all as u32,
        })
    }

    /// The schemas in force, in the order of matching.
    pub fn schemas(&self) -> &[Schema] {
        &self.schemas
    }

    /// The levels, mandatory ones included, by name.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The schemas that take no part, in the order given.
    pub fn dangling(&self) -> &[Dangling] {
        &self.dangling
    }

    /// Seats of the whole server, as compiled for.
    pub fn server_concurrency_limit(&self) -> u32 {
        self.server_concurrency_limit
    }

    /// What the levels that have objects say of their limits, for [`Limits::digest`].
    pub fn level_specs(&self) -> Vec<LevelSpec> {
        self.levels.iter().filter(|level| !level.imagined).map(Level::spec).collect()
    }

    /// The first schema that matches `request`, and its level; catch-all if none does.
    ///
    /// Costs some hash lookups and about as much with a thousand schemas as with ten. Neither allocates nor fails.
    #[inline]
    pub fn classify<G: AsRef<[u8]>>(&self, request: &Request<'_, G>) -> Classified {
        let found = self.index.first_match(request);
        let schema = found.unwrap_or(self.catch_all);
        Classified { schema, level: self.schemas[schema as usize].level, fallback: found.is_none() }
    }

    /// What tells the flow of `request` from others of the schema that it was classified to.
    #[inline]
    pub fn distinguisher<'a, G>(&self, classified: Classified, request: &Request<'a, G>) -> &'a [u8] {
        match self.schemas[classified.schema as usize].distinguisher {
            Distinguisher::None => b"",
            Distinguisher::ByUser => request.user,
            Distinguisher::ByNamespace => request.namespace,
        }
    }

    /// The flow of `request`, computed without a cache. Never allocates. [`Resolver`] is what servers use.
    pub fn flow<G: AsRef<[u8]>>(&self, request: &Request<'_, G>, hasher: &FlowHasher) -> Flow {
        self.flow_with(self.classify(request), request, |schema, distinguisher, deck| {
            let hash = hasher.hash(&*self.schemas[schema as usize].name, distinguisher);
            (hash, deck.deal(hash))
        })
    }

    /// The flow of a request that was classified; `deal` gives hash and hand of a schema's flow where they matter.
    #[inline]
    fn flow_with<G>(
        &self,
        classified: Classified,
        request: &Request<'_, G>,
        deal: impl FnOnce(u32, &[u8], &Deck) -> (u64, Hand),
    ) -> Flow {
        let Classified { schema, level, fallback } = classified;
        let (hash, hand) = match &self.levels[level as usize].kind {
            LevelKind::Exempt | LevelKind::Reject => (0, None),
            // One queue needs no hash, and the reference's answer is 0.
            LevelKind::Queue { deck, .. } if deck.deck_size() == 1 => (0, Some(deck.deal(0))),
            LevelKind::Queue { deck, .. } => {
                let (hash, hand) = deal(schema, self.distinguisher(classified, request), deck);
                (hash, Some(hand))
            }
        };
        Flow { schema, level, fallback, hash, hand }
    }
}

fn distinguisher(schema: &v1::FlowSchema, faults: &mut Vec<Fault>) -> Distinguisher {
    let Some(method) = &schema.spec.distinguisher_method else { return Distinguisher::None };
    Distinguisher::from_type(&method.type_).unwrap_or_else(|| {
        let detail = "supported values: \"ByNamespace\", \"ByUser\"";
        let fault = Fault::new(FaultKind::NotSupported, "spec.distinguisherMethod.type", detail);
        faults.push(fault.with_value(method.type_.as_str()).of("FlowSchema", schema.metadata.name.as_str()));
        Distinguisher::None
    })
}

fn duplicates(objects: &Objects) -> Vec<Fault> {
    let schemas = objects.flow_schemas.iter().map(|object| ("FlowSchema", &object.metadata.name));
    let levels =
        objects.priority_levels.iter().map(|object| ("PriorityLevelConfiguration", &object.metadata.name));
    let mut seen = BTreeSet::new();
    let again = schemas.chain(levels).filter(|&named| !seen.insert(named));
    let fault = |(kind, name): (&str, &String)| {
        Fault::new(FaultKind::Duplicate, "metadata.name", "")
            .with_value(name.as_str())
            .of(kind, name.as_str())
    };
    again.map(fault).collect()
}

fn levels(objects: &Objects, mandatory: &Objects, server_limit: u32, faults: &mut Vec<Fault>) -> Vec<Level> {
    let mut levels = BTreeMap::new();
    for object in &objects.priority_levels {
        match Level::compile(object) {
            Ok(level) => drop(levels.insert(level.name.clone(), level)),
            Err(more) => faults.extend(more),
        }
    }
    for object in &mandatory.priority_levels {
        if !objects.priority_levels.iter().any(|given| given.metadata.name == object.metadata.name) {
            let level = Level::compile(object).expect("the mandatory levels are valid");
            levels.insert(level.name.clone(), Level { imagined: true, ..level });
        }
    }
    let specs: Vec<LevelSpec> = levels.values().map(Level::spec).collect();
    // Nominal limits and bounds are the same under both values of fidelity.
    let (limits, ..) = Limits::at_rest(Fidelity::default(), server_limit, &specs);
    for level in levels.values_mut() {
        if let Some(limits) = limits.level(&level.name) {
            (level.nominal, level.min, level.max) = (limits.nominal, limits.min, limits.max);
        }
    }
    levels.into_values().collect()
}
