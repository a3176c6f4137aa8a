
// Everything begins here. What is drawn is known before an address chooses a part of it.
(async () => {
  await readKinds();
  setUpTables();
  setUpTimeline();
  const work = [...every('.stacks').map(flame), ...every('.map').map(heapMap)];
  await Promise.all(work);
  for (const [kind, rows] of kinds) tableOfKind(kind, rows);
  setUpLanes();
  setUpFindings();
  startSelection();
  root.dataset.ready = String(work.length);
})().catch(error => { root.dataset.failed = String(error); throw error; });
