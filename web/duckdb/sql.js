// SQL over the tables of a recording, in a frame of the page. DuckDB-WASM stands beside this file; the page sends the tables as Arrow files.
// @ts-check
'use strict';

/** DuckDB-WASM, as duckdb.js leaves it. */
const { duckdb } = /** @type {any} */ (globalThis);
/** Rows that are shown of an answer. */
const MOST = 1000;

const element = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const quoted = (/** @type {string} */ name) => `"${name.replaceAll('"', '""')}"`;

/** Starts DuckDB, in a worker. @returns {Promise<any>} a connection */
async function started() {
  // A worker of a blob has the policy of this page, by which DuckDB asks no other host, as it would for its extensions.
  const script = await (await fetch('duckdb-browser-eh.worker.js')).text();
  const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
  const database = new duckdb.AsyncDuckDB(new duckdb.VoidLogger(), worker);
  await database.instantiate(new URL('duckdb-eh.wasm', document.baseURI).href);
  await database.open({});
  const connection = await database.connect();
  await connection.query('SET autoinstall_known_extensions = false; SET autoload_known_extensions = false; CREATE SCHEMA files');
  return connection;
}

// DuckDB-WASM has no reader of JSON without an extension from its makers' host. This reads what the views ask of activities: a field, or a
// field of `tags`. A name in quotes before a colon is a field: quotes within texts have a backslash.
const TEXT = '"(?:[^"\\\\]|\\\\.)*"';
const JSON_FIELD = `CREATE MACRO "->>"(fields, place) AS (
  SELECT CASE
      WHEN value IN ('', 'null') THEN NULL
      WHEN value LIKE '"%' THEN replace(replace(replace(replace(replace(replace(value[2:-2],
        '\\\\', chr(1)), '\\"', '"'), '\\/', '/'), '\\n', chr(10)), '\\t', chr(9)), chr(1), '\\')
      ELSE value END
  FROM (SELECT regexp_extract(
    CASE WHEN place LIKE '$.tags.%' THEN regexp_extract(fields, '"tags":\\{(${TEXT}|[^"}])*') ELSE regexp_replace(fields, '"tags":\\{(${TEXT}|[^"}])*\\}', '') END,
    '"' || regexp_escape(CASE WHEN place LIKE '%"' THEN regexp_extract(place, '"(.*)"', 1) ELSE regexp_extract(place, '[^.]*$') END) || '":(${TEXT}|[^,}]*)', 1) AS value))`;

/** Makes tables and views of the files of a dataset. @param {any} connection @param {{path: string, parts: Uint8Array<ArrayBuffer>[]}[]} files */
async function loaded(connection, files) {
  /** By the text with which `views.sql` reads them. @type {Map<string, string[]>} */ const tables = new Map();
  let views = '';
  let number = 0;
  for (const { path, parts } of files) {
    const inside = path.slice(path.indexOf('/') + 1);
    if (inside === 'views.sql') views = await new Blob(parts).text();
    if (!inside.endsWith('.arrow')) continue;
    const file = new Uint8Array(await new Blob(parts).arrayBuffer());
    // An Arrow file is its stream between two names of the format.
    const stream = file.subarray(file.findIndex((byte, at) => byte === 255 && file[at + 1] === 255 && file[at + 2] === 255 && file[at + 3] === 255));
    const name = String(++number);
    await connection.insertArrowFromIPCStream(stream, { schema: 'files', name, create: true });
    const place = inside.replace(/\/trace=[^/]*\/[^/]*$/, '/*/*.arrow');
    tables.set(place, [...(tables.get(place) || []), `FROM files.${quoted(name)}`]);
  }
  await connection.query(JSON_FIELD);
  views = views.replace(/^(INSTALL|LOAD) .*$/gm, '').replace(/read_arrow\('((?:[^']|'')*)'\)/g, (_, place) => `(${(tables.get(place.replaceAll("''", "'")) || []).join(' UNION ALL BY NAME ')})`);
  await connection.query(views);
  return views;
}

/** Lists what can be asked, with what `views.sql` says of it. @param {any} connection @param {string} views */
async function listed(connection, views) {
  const about = new Map();
  for (const [, doc, name] of views.matchAll(/((?:^--.*\n)+)CREATE OR REPLACE (?:VIEW|MACRO) (\w+)/gm)) {
    about.set(name, doc.replace(/^-- needs: .*$/gm, '').replace(/^-- ?/gm, '').trim());
  }
  const found = await connection.query(`SELECT view_name AS name, '' AS arguments, false AS is_macro FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT function_name, '(' || array_to_string(parameters, ', ') || ')', true FROM duckdb_functions()
    WHERE NOT internal AND function_type = 'table_macro' ORDER BY ALL`);
  const choice = element('known');
  const groups = ['Views', 'Macros', 'Tables'].map((label) => Object.assign(document.createElement('optgroup'), { label }));
  for (const { name, arguments: words, is_macro: isMacro } of found.toArray()) {
    const option = Object.assign(document.createElement('option'), { textContent: name + words, value: name });
    option.dataset.query = `FROM ${/^\w+$/.test(name) ? name : quoted(name)}${words}\nLIMIT 100`;
    groups[isMacro ? 1 : about.has(name) ? 0 : 2].append(option);
  }
  choice.replaceChildren(...groups);
  choice.onchange = () => {
    element('about').textContent = about.get(choice.value) || '';
    element('query').value = choice.selectedOptions[0].dataset.query;
  };
  choice.onchange();
}

/** The answer to a query as texts. What is no question is run as it is. @param {any} connection @param {string} query */
async function answered(connection, query) {
  const text = query.trim().replace(/;\s*$/, '');
  const isQuestion = /^(\s|--.*\n)*\(*(SELECT|FROM|WITH|VALUES|TABLE|DESCRIBE|SHOW|SUMMARIZE|PIVOT|UNPIVOT)\b/i.test(text);
  // As texts, numbers and times read as in DuckDB.
  return connection.query(isQuestion ? `SELECT COLUMNS(*)::VARCHAR FROM (${text}\n) LIMIT ${MOST + 1}` : text);
}

/** A table of the first rows of an answer. @param {any} answer */
function shown(answer) {
  const table = document.createElement('table');
  const names = answer.schema.fields.map((/** @type {any} */ field) => field.name);
  const head = table.createTHead().insertRow();
  for (const name of names) head.append(Object.assign(document.createElement('th'), { textContent: name, scope: 'col' }));
  const body = table.createTBody();
  for (let at = 0; at < Math.min(MOST, answer.numRows); at++) {
    const row = body.insertRow();
    names.forEach((/** @type {string} */ _, /** @type {number} */ column) => {
      const value = answer.getChildAt(column).get(at);
      const cell = row.insertCell();
      cell.textContent = value === null ? 'NULL' : String(value);
      if (value === null) cell.className = 'null';
      else if (/^-?[0-9.]+(e[+-]?[0-9]+)?$/.test(cell.textContent)) cell.className = 'number';
    });
  }
  element('answer').replaceChildren(table);
}

/** Runs what stands in the box. @param {any} connection */
async function run(connection) {
  element('run').disabled = true;
  element('failed').hidden = true;
  const began = performance.now();
  try {
    const answer = await answered(connection, element('query').value);
    shown(answer);
    const rows = answer.numRows > MOST ? `The first ${MOST.toLocaleString('en')} rows` : `${answer.numRows} rows`;
    element('said').textContent = `${rows}, ${((performance.now() - began) / 1000).toFixed(2)} s`;
  } catch (error) {
    element('answer').replaceChildren();
    element('said').textContent = '';
    failed(error);
  }
  element('run').disabled = false;
}

/** @param {unknown} error */
function failed(error) {
  element('failed').textContent = error instanceof Error ? error.message : String(error);
  element('failed').hidden = false;
}

const connecting = started();
connecting.catch(failed);
addEventListener('message', async ({ data, origin }) => {
  if (origin !== location.origin || !data || data.tracequet !== 'tables') return;
  try {
    const connection = await connecting;
    element('said').textContent = 'Loading tables';
    await listed(connection, await loaded(connection, data.files));
    element('said').textContent = 'Ctrl+Enter runs, too.';
    element('run').disabled = false;
    element('ask').onsubmit = (/** @type {Event} */ event) => (event.preventDefault(), run(connection));
    element('query').onkeydown = (/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && element('ask').requestSubmit();
  } catch (error) {
    element('said').textContent = '';
    failed(error);
  }
});
