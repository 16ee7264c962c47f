"""Names what a run of text is about: a few words, phrases and names as they were written.

Used for the closing line of notes, which tells a reader what there is to ask for. Quotes nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ..kernels import analyse_terms
from .quotes import CALL_SIGN, Quote
from .salience import TermWeights

__all__ = ["name_topics"]

_WORD = re.compile(r"[^\W\d_]{4,30}")
_PATH = re.compile(r"[\w.~@:-]*+[/\\_][\w./\\~@:-]*")
_NAME = re.compile(r"[A-Z][a-z]{1,20}(?: [A-Z][a-z]{1,20}){1,2}")
_KANA_OR_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_CJK_RUN = re.compile(r"[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
_LONGEST_PHRASE = 8
_MOST_TOPICS = 8
_COMMON_SHARE = 0.15
_COMMON_COUNT = 12

# Words too frequent in their language to name a topic; elsewhere frequency alone holds words back.
_COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        """about above after again against also although always among another because been before
        being below between both cannot could does doing done down during each either else even
        every everything false first following from further good have having here however instead
        into itself just know last like likely look made make many maybe might more most much must
        need needs never next none nothing null once only other otherwise over please quite rather
        really same second seems shall should show since some something still such sure than thank
        thanks that their them then there these they thing things this those though through true
        under until used using very want wants well were what when where whether which while whole
        will with within without work works would your yours yourself tool input content message
        text file line lines http https successfully""",
    )
)
_COMMON_CJK = frozenset(
    re.findall(
        r"\w+",
        """觉得 自己 什么 今天 明天 昨天 可以 没有 这个 那个 我们 你们 他们 因为 所以 但是 如果
        一个 一些 还是 或者 现在 知道 时候 怎么 非常 真的 谢谢 感谢 推荐 地方 事情 东西 问题 当然
        喜欢 意思 今日 明日 昨日 自分 本当 大丈夫 最近 お願 方法""",
    )
)
_CJK_PARTICLES = frozenset(
    "的了是在我你他她它们們和与與就都也很不有这這那吗嗎呢吧啊个個为為对對"
    "把被要会會能可以到说說去来來上下中从從及其一"
)


def name_topics(quotes: Sequence[Quote], weights: TermWeights) -> list[str]:
    """Return up to eight topics, the heaviest first, none inside another.

    Parameters
    ----------
    quotes
        All quotes of the run.
    weights
        Their term weights.

    Complexity
    ----------
    Linear in the length of the quotes, n log n in the number of different words.
    """
    surfaces: dict[str, Counter[str]] = {}
    scores: dict[str, float] = {}
    voices: dict[str, float] = defaultdict(float)
    limit = max(_COMMON_COUNT, int(_COMMON_SHARE * len(quotes)))
    for quote in quotes:
        if not quote.quotable or quote.text.startswith(CALL_SIGN):
            continue
        for surface in _candidates(quote.text, weights):
            folded = surface.casefold()
            surfaces.setdefault(folded, Counter())[surface] += 1
            voices[folded] += quote.factor
            if folded not in scores:
                scores[folded] = _score(surface, weights, limit)
    ranked = sorted(
        (-score * math.sqrt(voices[folded]), folded)
        for folded, score in scores.items()
        if score > 0
    )
    return _without_overlap(surfaces[folded].most_common(1)[0][0] for _, folded in ranked)


def _candidates(text: str, weights: TermWeights) -> Iterator[str]:
    if not text.isascii():
        for run in _CJK_RUN.findall(text):
            yield from _cohesive_phrases(run, weights)
    text = _PATH.sub(" ", text)
    for name in _NAME.findall(text):
        if name.split(" ")[0].casefold() not in _COMMON_WORDS:
            yield name
    for word in _WORD.findall(text):
        if word.casefold() not in _COMMON_WORDS and not _KANA_OR_CJK.search(word):
            yield word


def _cohesive_phrases(run: str, weights: TermWeights) -> Iterator[str]:
    """Yield stretches of a CJK run whose neighbouring characters go together elsewhere too."""
    begin = 0
    for end in range(1, len(run) + 1):
        pair = run[end - 1 : end + 1]
        if end < len(run) and weights.in_fragments[pair] >= 2 and _CJK_PARTICLES.isdisjoint(pair):
            continue
        phrase = run[begin:end]
        if 2 <= len(phrase) <= _LONGEST_PHRASE and phrase not in _COMMON_CJK:
            yield phrase
        begin = end


def _score(surface: str, weights: TermWeights, limit: int) -> float:
    """Return the mean weight of a candidate's terms, more for phrases; 0 for what is everywhere."""
    terms = [term for term in analyse_terms(surface) if len(term) > 1]
    if not terms or min(weights.in_fragments[term] for term in terms) > limit:
        return 0.0
    mean = weights.total(terms) / len(terms)
    length = len(surface) * (1 if surface.isascii() else 2)
    return mean * math.sqrt(min(length, 12))


def _without_overlap(ranked: Iterable[str]) -> list[str]:
    chosen: list[str] = []
    taken: set[str] = set()
    for surface in ranked:
        terms = {term for term in analyse_terms(surface) if len(term) > 1}
        if terms and taken.isdisjoint(terms):
            chosen.append(surface)
            taken |= terms
            if len(chosen) == _MOST_TOPICS:
                break
    return chosen
