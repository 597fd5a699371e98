//! The tables of `pg_catalog`, made of the tables that a statement may read.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;

use super::sheet::{Cell, Row, Sheet};
use super::{DATABASE, PostgresSession, Relation, SCHEMA, comments, schemas, type_table};
use crate::engine::CATALOG;

/// The schema that has the tables of the catalog.
pub(super) const PG_CATALOG: &str = "pg_catalog";

/// Numbers of objects that every Postgres has.
const CATALOG_OID: i64 = 11;
const SCHEMA_OID: i64 = 2200;
const INFORMATION_OID: i64 = 13_000;
const OWNER_OID: i64 = 10;
const DATABASE_OID: i64 = 16_384 - 1;
const HEAP_OID: i64 = 2;
const TABLESPACE_OID: i64 = 1663;
const CLASS_OID: i64 = 1259;

const PG_CLASS: &str = "oid o, relname t, relnamespace o, reltype o, reloftype o, relowner o, relam o, \
    relfilenode o, reltablespace o, relpages 4, reltuples f, relallvisible 4, reltoastrelid o, relhasindex b, \
    relisshared b, relpersistence t, relkind t, relnatts 2, relchecks 2, relhasrules b, relhastriggers b, \
    relhassubclass b, relrowsecurity b, relforcerowsecurity b, relispopulated b, relreplident t, relispartition b, \
    relrewrite o, relfrozenxid o, relminmxid o, relacl a, reloptions a, relpartbound n";

const PG_ATTRIBUTE: &str = "attrelid o, attname t, atttypid o, attstattarget 4, attlen 2, attnum 2, attndims 4, \
    attcacheoff 4, atttypmod 4, attbyval b, attalign t, attstorage t, attcompression t, attnotnull b, atthasdef b, \
    atthasmissing b, attidentity t, attgenerated t, attisdropped b, attislocal b, attinhcount 4, attcollation o, \
    attacl a, attoptions a, attfdwoptions a, attmissingval n";

const PG_TYPE: &str = "oid o, typname t, typnamespace o, typowner o, typlen 2, typbyval b, typtype t, typcategory t, \
    typispreferred b, typisdefined b, typdelim t, typrelid o, typsubscript t, typelem o, typarray o, typinput t, \
    typoutput t, typreceive t, typsend t, typmodin t, typmodout t, typanalyze t, typalign t, typstorage t, \
    typnotnull b, typbasetype o, typtypmod 4, typndims 4, typcollation o, typdefaultbin n, typdefault n, typacl a";

const PG_DATABASE: &str = "oid o, datname t, datdba o, encoding 4, datlocprovider t, datistemplate b, datallowconn b, \
    datconnlimit 4, datlastsysoid o, datfrozenxid o, datminmxid o, dattablespace o, datcollate t, datctype t, \
    daticulocale n, datcollversion n, datacl a";

const PG_NAMESPACE: &str = "oid o, nspname t, nspowner o, nspacl a";

const PG_ROLES: &str = "rolname t, rolsuper b, rolinherit b, rolcreaterole b, rolcreatedb b, rolcanlogin b, \
    rolreplication b, rolconnlimit 4, rolpassword n, rolvaliduntil n, rolbypassrls b, rolconfig a, oid o";

const PG_DESCRIPTION: &str = "objoid o, classoid o, objsubid 4, description t";

const PG_SETTINGS: &str = "name t, setting n, unit n, category t, short_desc t, extra_desc n, context t, vartype t, \
    source t, min_val n, max_val n, enumvals n, boot_val n, reset_val n, sourcefile n, sourceline 4, pending_restart b";

const PG_TABLES: &str = "schemaname t, tablename t, tableowner t, tablespace n, hasindexes b, hasrules b, \
    hastriggers b, rowsecurity b";

/// Tables that have no rows, whatever is asked: clients join them to find indexes, constraints and the like.
const EMPTY: [(&str, &str); 38] = [
    ("pg_aggregate", "aggfnoid o, aggkind t"),
    ("pg_attrdef", "oid o, adrelid o, adnum 2, adbin n"),
    (
        "pg_auth_members",
        "roleid o, member o, grantor o, admin_option b",
    ),
    (
        "pg_cast",
        "oid o, castsource o, casttarget o, castfunc o, castcontext t, castmethod t",
    ),
    (
        "pg_constraint",
        "oid o, conname t, connamespace o, contype t, condeferrable b, condeferred b, convalidated b, conrelid o, \
         contypid o, conindid o, conparentid o, confrelid o, confupdtype t, confdeltype t, confmatchtype t, \
         conislocal b, coninhcount 4, connoinherit b, conkey l, confkey l, conpfeqop l, conppeqop l, conffeqop l, \
         conexclop l, conbin n",
    ),
    ("pg_conversion", "oid o, conname t, connamespace o"),
    (
        "pg_default_acl",
        "oid o, defaclrole o, defaclnamespace o, defaclobjtype t, defaclacl a",
    ),
    (
        "pg_depend",
        "classid o, objid o, objsubid 4, refclassid o, refobjid o, refobjsubid 4, deptype t",
    ),
    (
        "pg_enum",
        "oid o, enumtypid o, enumsortorder f, enumlabel t",
    ),
    (
        "pg_event_trigger",
        "oid o, evtname t, evtevent t, evtowner o, evtfoid o, evtenabled t",
    ),
    (
        "pg_extension",
        "oid o, extname t, extowner o, extnamespace o, extrelocatable b, extversion t",
    ),
    (
        "pg_foreign_data_wrapper",
        "oid o, fdwname t, fdwowner o, fdwhandler o, fdwvalidator o, fdwacl a, fdwoptions a",
    ),
    (
        "pg_foreign_server",
        "oid o, srvname t, srvowner o, srvfdw o, srvtype n, srvversion n, srvacl a, srvoptions a",
    ),
    ("pg_foreign_table", "ftrelid o, ftserver o, ftoptions a"),
    (
        "pg_index",
        "indexrelid o, indrelid o, indnatts 2, indnkeyatts 2, indisunique b, indnullsnotdistinct b, indisprimary b, \
         indisexclusion b, indimmediate b, indisclustered b, indisvalid b, indcheckxmin b, indisready b, indislive b, \
         indisreplident b, indkey l, indcollation l, indclass l, indoption l, indexprs n, indpred n",
    ),
    (
        "pg_indexes",
        "schemaname t, tablename t, indexname t, tablespace n, indexdef t",
    ),
    (
        "pg_inherits",
        "inhrelid o, inhparent o, inhseqno 4, inhdetachpending b",
    ),
    ("pg_language", "oid o, lanname t, lanowner o"),
    (
        "pg_matviews",
        "schemaname t, matviewname t, matviewowner t, tablespace n, hasindexes b, ispopulated b, definition n",
    ),
    (
        "pg_opclass",
        "oid o, opcmethod o, opcname t, opcnamespace o, opcowner o, opcintype o, opcdefault b",
    ),
    (
        "pg_operator",
        "oid o, oprname t, oprnamespace o, oprkind t, oprleft o, oprright o, oprresult o",
    ),
    (
        "pg_partitioned_table",
        "partrelid o, partstrat t, partnatts 2, partdefid o",
    ),
    (
        "pg_policy",
        "oid o, polname t, polrelid o, polcmd t, polpermissive b, polroles l, polqual n, polwithcheck n",
    ),
    (
        "pg_proc",
        "oid o, proname t, pronamespace o, proowner o, prolang o, prokind t, proretset b, prorettype o, pronargs 2, \
         proargtypes l, proallargtypes l, proargnames n, proargmodes n, prosrc n",
    ),
    (
        "pg_publication",
        "oid o, pubname t, pubowner o, puballtables b, pubinsert b, pubupdate b, pubdelete b, pubtruncate b",
    ),
    ("pg_publication_namespace", "oid o, pnpubid o, pnnspid o"),
    (
        "pg_publication_rel",
        "oid o, prpubid o, prrelid o, prqual n, prattrs l",
    ),
    ("pg_range", "rngtypid o, rngsubtype o, rngmultitypid o"),
    (
        "pg_rewrite",
        "oid o, rulename t, ev_class o, ev_type t, ev_enabled t, is_instead b",
    ),
    (
        "pg_sequence",
        "seqrelid o, seqtypid o, seqstart 8, seqincrement 8, seqmax 8, seqmin 8, seqcache 8, seqcycle b",
    ),
    ("pg_shdescription", "objoid o, classoid o, description t"),
    (
        "pg_stat_activity",
        "datid o, datname n, pid 4, usename n, application_name n, state n, query n",
    ),
    (
        "pg_stat_user_tables",
        "relid o, schemaname t, relname t, seq_scan 8, n_live_tup 8, n_dead_tup 8",
    ),
    (
        "pg_statistic_ext",
        "oid o, stxrelid o, stxname t, stxnamespace o, stxowner o, stxkeys l, stxkind n",
    ),
    (
        "pg_statio_user_tables",
        "relid o, schemaname t, relname t, heap_blks_read 8",
    ),
    (
        "pg_trigger",
        "oid o, tgrelid o, tgparentid o, tgname t, tgfoid o, tgtype 2, tgenabled t, tgisinternal b, tgconstrrelid o, \
         tgconstrindid o, tgconstraint o, tgdeferrable b, tginitdeferred b, tgnargs 2, tgattr l, tgqual n",
    ),
    (
        "pg_subscription",
        "oid o, subdbid o, subname t, subowner o, subenabled b",
    ),
    (
        "pg_views",
        "schemaname t, viewname t, viewowner t, definition n",
    ),
];

/// Tables with rows.
const FILLED: [&str; 16] = [
    "pg_am",
    "pg_attribute",
    "pg_authid",
    "pg_class",
    "pg_collation",
    "pg_database",
    "pg_description",
    "pg_namespace",
    "pg_roles",
    "pg_settings",
    "pg_shadow",
    "pg_tables",
    "pg_tablespace",
    "pg_timezone_names",
    "pg_type",
    "pg_user",
];

/// True if a table of the catalog has no rows. Of collations a column has none, so that no column finds one.
pub(super) fn is_empty(name: &str) -> bool {
    name == "pg_collation" || EMPTY.iter().any(|(known, _)| *known == name)
}

/// Registers the schemas of the catalog.
pub(super) fn register(
    context: &SessionContext,
    session: &Arc<PostgresSession>,
    relations: &Arc<[Relation]>,
) -> Result<()> {
    let catalog = context.catalog(CATALOG);
    let catalog = catalog.ok_or_else(|| DataFusionError::Internal("no catalog".to_owned()))?;
    let tables = CatalogTables {
        session: Arc::clone(session),
        relations: Arc::clone(relations),
    };
    catalog.register_schema(PG_CATALOG, Arc::new(tables))?;
    let information = MemorySchemaProvider::new();
    for sheet in schemas::sheets(session, relations) {
        let name = sheet.name.to_owned();
        information.register_table(name, Arc::new(sheet.table()?))?;
    }
    catalog.register_schema(schemas::INFORMATION_SCHEMA, Arc::new(information))?;
    Ok(())
}

/// The tables of the catalog. Each is made when a statement reads it.
#[derive(Debug)]
struct CatalogTables {
    session: Arc<PostgresSession>,
    relations: Arc<[Relation]>,
}

#[async_trait]
impl SchemaProvider for CatalogTables {
    fn table_names(&self) -> Vec<String> {
        let empty = EMPTY.iter().map(|(name, _)| *name);
        let all = FILLED.into_iter().chain(empty);
        all.map(str::to_owned).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(sheet) = self.sheet(name) else {
            return Ok(None);
        };
        let table: Arc<dyn TableProvider> = Arc::new(sheet.table()?);
        Ok(Some(table))
    }

    fn table_exist(&self, name: &str) -> bool {
        FILLED.contains(&name) || EMPTY.iter().any(|(known, _)| *known == name)
    }
}

impl CatalogTables {
    fn sheet(&self, name: &str) -> Option<Sheet> {
        let sheet = |name, columns, rows| Sheet {
            name,
            columns,
            rows,
        };
        Some(match name {
            "pg_am" => sheet(
                "pg_am",
                "oid o, amname t, amhandler t, amtype t",
                access_methods(),
            ),
            "pg_attribute" => sheet("pg_attribute", PG_ATTRIBUTE, self.attributes()),
            "pg_authid" | "pg_roles" => sheet("pg_roles", PG_ROLES, self.roles()),
            "pg_class" => sheet("pg_class", PG_CLASS, self.classes()),
            "pg_collation" => sheet(
                "pg_collation",
                "oid o, collname t, collnamespace o, collowner o, collprovider t, collencoding 4, collcollate n",
                vec![vec![
                    ("oid", 100.into()),
                    ("collname", "default".into()),
                    ("collnamespace", CATALOG_OID.into()),
                ]],
            ),
            "pg_database" => sheet("pg_database", PG_DATABASE, databases()),
            "pg_description" => sheet("pg_description", PG_DESCRIPTION, self.descriptions()),
            "pg_namespace" => sheet("pg_namespace", PG_NAMESPACE, namespaces()),
            "pg_settings" => sheet("pg_settings", PG_SETTINGS, self.settings()),
            "pg_shadow" | "pg_user" => sheet(
                "pg_user",
                "usename t, usesysid o, usecreatedb b, usesuper b, userepl b, usebypassrls b, passwd n, valuntil n, useconfig a",
                vec![vec![
                    ("usename", self.session.user.as_str().into()),
                    ("usesysid", OWNER_OID.into()),
                ]],
            ),
            "pg_tables" => sheet("pg_tables", PG_TABLES, self.tables()),
            "pg_tablespace" => sheet(
                "pg_tablespace",
                "oid o, spcname t, spcowner o, spcacl a, spcoptions a",
                vec![vec![
                    ("oid", TABLESPACE_OID.into()),
                    ("spcname", "pg_default".into()),
                    ("spcowner", OWNER_OID.into()),
                ]],
            ),
            "pg_timezone_names" => sheet(
                "pg_timezone_names",
                "name t, abbrev t, utc_offset t, is_dst b",
                vec![vec![
                    ("name", "UTC".into()),
                    ("abbrev", "UTC".into()),
                    ("utc_offset", "00:00:00".into()),
                ]],
            ),
            "pg_type" => sheet("pg_type", PG_TYPE, type_rows()),
            other => {
                let (name, columns) = EMPTY.iter().find(|(known, _)| *known == other)?;
                Sheet::empty(name, columns)
            }
        })
    }

    fn classes(&self) -> Vec<Row> {
        let row = |relation: &Relation| -> Row {
            vec![
                ("oid", relation.oid.into()),
                ("relname", relation.name.as_str().into()),
                ("relnamespace", SCHEMA_OID.into()),
                ("relowner", OWNER_OID.into()),
                ("relam", HEAP_OID.into()),
                ("relfilenode", relation.oid.into()),
                // It was never counted.
                ("reltuples", (-1).into()),
                ("relpersistence", "p".into()),
                ("relkind", "r".into()),
                ("relnatts", count(relation.schema.fields().len())),
                ("relispopulated", true.into()),
                ("relreplident", "n".into()),
            ]
        };
        self.relations.iter().map(row).collect()
    }

    fn attributes(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for relation in self.relations.iter() {
            for (at, field) in relation.schema.fields().iter().enumerate() {
                let (found, is_list) = type_table::of_arrow(field.data_type());
                let oid = if is_list { found.list_oid } else { found.oid };
                rows.push(vec![
                    ("attrelid", relation.oid.into()),
                    ("attname", field.name().as_str().into()),
                    ("atttypid", oid.into()),
                    ("attstattarget", (-1).into()),
                    (
                        "attlen",
                        i64::from(if is_list { -1 } else { found.bytes }).into(),
                    ),
                    ("attnum", count(at + 1)),
                    ("attndims", i64::from(is_list).into()),
                    ("attcacheoff", (-1).into()),
                    ("atttypmod", (-1).into()),
                    ("attalign", "i".into()),
                    ("attstorage", "p".into()),
                    ("attislocal", true.into()),
                ]);
            }
        }
        rows
    }

    fn descriptions(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        let row = |oid: i64, number: Cell, text: String| -> Row {
            vec![
                ("objoid", oid.into()),
                ("classoid", CLASS_OID.into()),
                ("objsubid", number),
                ("description", text.into()),
            ]
        };
        for relation in self.relations.iter() {
            let of_table = comments::of_table(&relation.name);
            rows.extend(of_table.map(|text| row(relation.oid, 0.into(), text)));
            for (at, field) in relation.schema.fields().iter().enumerate() {
                let comment = comments::of_column(field.name());
                rows.extend(comment.map(|text| row(relation.oid, count(at + 1), text.to_owned())));
            }
        }
        rows
    }

    fn tables(&self) -> Vec<Row> {
        let row = |relation: &Relation| -> Row {
            vec![
                ("schemaname", SCHEMA.into()),
                ("tablename", relation.name.as_str().into()),
                ("tableowner", DATABASE.into()),
            ]
        };
        self.relations.iter().map(row).collect()
    }

    fn settings(&self) -> Vec<Row> {
        let row = |(name, value): &(String, String)| -> Row {
            vec![
                ("name", name.as_str().into()),
                ("setting", value.as_str().into()),
                ("category", "Logpond".into()),
                ("context", "user".into()),
                ("vartype", "string".into()),
                ("source", "session".into()),
                ("boot_val", value.as_str().into()),
                ("reset_val", value.as_str().into()),
            ]
        };
        self.session.settings.iter().map(row).collect()
    }

    fn roles(&self) -> Vec<Row> {
        let role = |oid: i64, name: &str| -> Row {
            vec![
                ("oid", oid.into()),
                ("rolname", name.into()),
                ("rolinherit", true.into()),
                ("rolcanlogin", true.into()),
                ("rolconnlimit", (-1).into()),
            ]
        };
        let mut roles = vec![role(OWNER_OID, DATABASE)];
        if self.session.user != DATABASE {
            roles.push(role(OWNER_OID + 1, &self.session.user));
        }
        roles
    }
}

fn count(count: usize) -> Cell {
    Cell::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

fn access_methods() -> Vec<Row> {
    vec![vec![
        ("oid", HEAP_OID.into()),
        ("amname", "heap".into()),
        ("amhandler", "heap_tableam_handler".into()),
        ("amtype", "t".into()),
    ]]
}

fn databases() -> Vec<Row> {
    vec![vec![
        ("oid", DATABASE_OID.into()),
        ("datname", DATABASE.into()),
        ("datdba", OWNER_OID.into()),
        // The number of UTF-8 among the encodings of Postgres.
        ("encoding", 6.into()),
        ("datlocprovider", "c".into()),
        ("datallowconn", true.into()),
        ("datconnlimit", (-1).into()),
        ("dattablespace", TABLESPACE_OID.into()),
        ("datcollate", "C.UTF-8".into()),
        ("datctype", "C.UTF-8".into()),
    ]]
}

fn namespaces() -> Vec<Row> {
    let row = |(oid, name): (i64, &str)| -> Row {
        vec![
            ("oid", oid.into()),
            ("nspname", name.into()),
            ("nspowner", OWNER_OID.into()),
        ]
    };
    let all = [
        (CATALOG_OID, PG_CATALOG),
        (SCHEMA_OID, SCHEMA),
        (INFORMATION_OID, schemas::INFORMATION_SCHEMA),
    ];
    all.into_iter().map(row).collect()
}

fn type_rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for known in type_table::all() {
        rows.push(vec![
            ("oid", known.oid.into()),
            ("typname", known.name.into()),
            ("typnamespace", CATALOG_OID.into()),
            ("typowner", OWNER_OID.into()),
            ("typlen", i64::from(known.bytes).into()),
            (
                "typtype",
                (if known.category == 'P' { "p" } else { "b" }).into(),
            ),
            ("typcategory", known.category.to_string().into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typarray", known.list_oid.into()),
            ("typinput", format!("{}in", known.name).into()),
            ("typoutput", format!("{}out", known.name).into()),
            ("typreceive", format!("{}recv", known.name).into()),
            ("typsend", format!("{}send", known.name).into()),
            ("typtypmod", (-1).into()),
        ]);
        if known.list_oid != 0 {
            rows.push(vec![
                ("oid", known.list_oid.into()),
                ("typname", format!("_{}", known.name).into()),
                ("typnamespace", CATALOG_OID.into()),
                ("typowner", OWNER_OID.into()),
                ("typlen", (-1).into()),
                ("typtype", "b".into()),
                ("typcategory", "A".into()),
                ("typisdefined", true.into()),
                ("typdelim", ",".into()),
                ("typelem", known.oid.into()),
                ("typinput", "array_in".into()),
                ("typoutput", "array_out".into()),
                ("typreceive", "array_recv".into()),
                ("typsend", "array_send".into()),
                ("typtypmod", (-1).into()),
            ]);
        }
    }
    rows
}
