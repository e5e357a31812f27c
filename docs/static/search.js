// SPDX-License-Identifier: GPL-3.0-or-later
// What a search puts first: the words of a failure lead to what it was, and then to each cause.
"use strict";

var Scorer = {
  score: ([page, , , , score]) => (page === "why" ? score + 20 : score),
  // As Sphinx has them.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
