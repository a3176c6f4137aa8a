// SQL in the page of a host, in Chromium: node .ci/browser-sql.mjs SITE RECORDING MANIFEST FOLDER
// SITE is what web/duckdb.sh made; MANIFEST is that of the recording as the program for terminals converts it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { started } from './chromium.mjs';

const [site, recording, manifest, folder] = process.argv.slice(2).map((name) => path.resolve(name));
const kinds = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' };
const server = http.createServer(({ url }, answer) => {
  const file = path.join(site, new URL(url, 'http://localhost').pathname);
  if (!file.startsWith(site) || !fs.statSync(file, { throwIfNoEntry: false })?.isFile()) return answer.writeHead(404).end();
  answer.writeHead(200, { 'Content-Type': kinds[path.extname(file)] ?? 'application/octet-stream' });
  fs.createReadStream(file).pipe(answer);
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const host = `http://127.0.0.1:${server.address().port}`;

const sql = `document.querySelector('iframe[title="SQL"]').contentDocument`;
const { send, evaluate, until, choose, requests, complaints, end } = await started(
  path.join(folder, 'sql'),
  `document.getElementById("status").textContent + " " + failed.textContent + " " + (document.querySelector('iframe[title="SQL"]') ? ${sql}.body.innerText.slice(0, 2000) : '')`,
);
await send('Page.navigate', { url: `${host}/index.html` });
await until('typeof state === "object"', 'the page does not start');
await choose('#files', [recording]);
await until('state.page && !state.cancel', 'a recording');
assert.ok(!requests.some((url) => url.includes('duckdb')), 'DuckDB is loaded before the click');
await evaluate('document.getElementById("sql").click()');
await until(`document.querySelector('iframe[title="SQL"]') && ${sql}.getElementById("run") && !${sql}.getElementById("run").disabled`, 'DuckDB');

/** Runs a query, and gives the rows that are shown, or the error. */
async function asked(query) {
  await evaluate(`${sql}.getElementById("query").value = ${JSON.stringify(query)}; ${sql}.getElementById("run").click()`);
  await until(`!${sql}.getElementById("run").disabled`, query);
  return evaluate(`${sql}.getElementById("failed").hidden
    ? [...${sql}.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)) : ${sql}.getElementById("failed").textContent`);
}

// Each table has the rows that the program for terminals writes.
const { tables } = JSON.parse(fs.readFileSync(manifest, 'utf8'));
const counts = tables.map(({ name }) => `SELECT '${name}' AS name, count(*) FROM "${name}"`).join(' UNION ALL ');
assert.deepEqual((await asked(`${counts} ORDER BY name`)).sort(), tables.map(({ name, rows }) => [name, String(rows)]).sort());
// Views are there, and so are those that read JSON.
const routes = await asked('SELECT route, requests FROM requests_by_route ORDER BY ALL');
assert.ok(Array.isArray(routes) && routes.length > 0 && routes.every(([, count]) => Number(count) > 0), String(routes));
const known = await evaluate(`[...${sql}.getElementById('known').options].map((option) => option.textContent)`);
for (const name of ['pauses', 'gc', '(']) assert.ok(known.some((text) => text.includes(name)), `${name} is not among ${known}`);
// Answers are bounded, errors are shown, and nothing is fetched from elsewhere.
assert.equal((await asked('FROM range(5000)')).length, 1000);
assert.match(await asked('FROM nothing'), /nothing does not exist/);
assert.match(await asked("FROM read_csv('http://elsewhere.example/a.csv')"), /./);
assert.equal(typeof (await asked('LOAD httpfs')), 'string');
assert.ok(requests.every((url) => url.startsWith(host) || /^(blob|data):/.test(url)), requests.join(' '));
await asked('FROM pauses LIMIT 100');
fs.writeFileSync(path.join(folder, 'sql.png'), Buffer.from((await send('Page.captureScreenshot')).data, 'base64'));
// The page comes back.
await evaluate('document.getElementById("sql").click()');
assert.deepEqual(await evaluate('[...document.querySelectorAll("iframe")].map((frame) => frame.hidden)'), [false, true]);
// The browser complains of the two hosts that it was asked for, and of nothing else.
const others = complaints.filter((text) => !/elsewhere\.example|extensions\.duckdb\.org/.test(text));
assert.deepEqual(others, [], 'the browser complains');
console.log(`SQL on ${tables.length} tables beside the page; the browser complains of the two refused hosts alone`);
end();
process.exit(0);
