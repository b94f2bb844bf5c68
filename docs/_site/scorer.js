/* Which results of a search come first: pages whose title has the words, and guides before the reference. */
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, title, , , score, , kind]) => {
    const words = (localStorage.getItem("sphinx_highlight_terms") || "").split(" ").filter(Boolean);
    const named = words.filter((word) => title.toLowerCase().includes(word)).length / (words.length || 1);
    const place = /^(how-to|tutorials|start)\//.test(page) ? 8
      : /^project\//.test(page) ? -10
      : /^reference\//.test(page) ? -5
      : /^gallery\//.test(page) ? 0 : 4;
    return score + 10 * named + place - (kind === "object" ? 12 : 0);
  },
};
