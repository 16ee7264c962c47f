"""Says how much a quotable fragment is worth: its terms, its exact names, the kind of statement.

The weights carry the experience that notes fail people in three ways: they lose requests and
decisions, they lose negative results, and they lose exact names. Cues are words of several
languages; a language without cues is ranked by its terms alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

__all__ = [
    "TermWeights",
    "find_identifiers",
    "identifier_weight",
    "statement_weight",
]

_DECISION = re.compile(
    r"\b(?:decid|decision|agree|chose\b|choose|will use|go(?:ing)? with|must|should|never"
    r"|always|instead|prefer|requir|deadline|constrain|conclu|approv|reject|cancel|don'?t\b|do not"
    r"|todo\b|block(?:ed|er)|root cause|because|fixed|remember|important|plan\b|need(?:s|ed)?\b"
    r"|entschied|müssen|sollen|beschl|decidi|debe|necesit|décid|faut\b|doit\b|реш[иае]|нужно|нельзя"
    r"|необходимо|должн)"
    r"|决定|決定|确定|確定|必须|必須|不要|不得|改为|改用|采用|採用|取消|同意|结论|結論|要求|需要|应该"
    r"|截止|原因|计划|記得|记得|重要|决め|決め|必要|しないで|してください|べき|方針"
    r"|결정|필요|해야|하지 ?마",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:fail|error|(?:does|did|do|is|was)(?:n'?t| not) work|broken|bugs?\b|crash|exception"
    r"|denied|not found|no such|time(?:d )?out|cannot|can'?t\b|unable|missing|wrong|refus|invalid"
    r"|conflict|traceback|fatal|panic|warning|undefined|exit(?:ed)? (?:code|with|status)|fehler"
    r"|kaputt|falló"
    r"|erreur|échou|ошибк|не работает|сбой)"
    r"|(?:Error|Exception|Failure)\b"
    r"|失败|失敗|错误|錯誤|无法|無法|不能|不行|报错|報錯|异常|異常|崩溃|超时|矛盾|不一致|エラー|できな"
    r"|動かな|動作しな|실패|오류|안 ?[돼되됩]",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？؟][\"'”’」』)）]*$")

# A word, path, address, URL or code as people write it; trailing punctuation is trimmed later.
_TOKEN = re.compile(r"[A-Za-z0-9_~@/.#][A-Za-z0-9_\-./\\:@#%+~=&?]*")
_TRAILING = ".,:;-?=&/+\\"
_LETTER_AND_DIGIT = re.compile(r"[A-Za-z].*\d|\d.*[A-Za-z]")
_MEASURE = re.compile(r"\d[\d.,:]*(?:st|nd|rd|th|s|x|h|m|ms|k|am|pm|K|M|G|px)?", re.IGNORECASE)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_DOTTED = re.compile(r"[A-Za-z0-9_-]{2,}\.[A-Za-z]\w*")
_FILE_ENDING = re.compile(
    r"\.(?:[chrm]|py[xi]?|[jt]sx?|[cm]js|json[lc5]?|md|txt|rst|ya?ml|toml|sh|bat|go|rs|[ch]pp|cc|java|kt|rb"
    r"|php|swift|sql|db|sqlite|csv|tsv|xml|html?|s?css|svg|vue|log|lock|env|ini|cfg|conf|pdf|docx?|xlsx?"
    r"|pptx?|png|jpe?g|gif|webp|mp[34]|wav|zip|gz|tgz|tar|whl|exe|dll|so|ipynb|com|org|net|io|dev|cn|de"
    r"|jp|edu|gov)$",
    re.IGNORECASE,
)
_LONGEST_TELLING_NAME = 32
_LONGEST_IDENTIFIER = 120

_IDENTIFIER_BONUS = 0.12
_SINGLE_MENTION_WEIGHT = 0.6
_LONE_CJK_WEIGHT = 0.25
_RAISED_WEIGHT = 3.0


class TermWeights:
    """TF-IDF weights of the terms of one run of fragments.

    Parameters
    ----------
    documents
        The terms of each fragment; what is said in the same words again counts once.
    groups
        For each fragment, the number of the message it belongs to; equal numbers are adjacent.
    raised
        Terms that matter more than their frequency tells.

    Complexity
    ----------
    Linear in the number of terms.
    """

    def __init__(
        self,
        documents: Sequence[Sequence[str]],
        groups: Sequence[int],
        raised: Collection[str] = (),
    ) -> None:
        in_fragments: Counter[str] = Counter()
        in_messages: Counter[str] = Counter()
        last_message: dict[str, int] = {}
        distinct = {tuple(terms): group for terms, group in zip(documents, groups, strict=True)}
        for terms, group in distinct.items():
            for term in dict.fromkeys(terms):
                in_fragments[term] += 1
                if last_message.get(term) != group:
                    last_message[term] = group
                    in_messages[term] += 1
        total = len(distinct)
        self._weights = {
            term: _spread(in_messages[term]) * math.log(1.0 + total / count) * _script(term)
            for term, count in in_fragments.items()
        }
        for term in self._weights.keys() & set(raised):
            self._weights[term] *= _RAISED_WEIGHT
        self.in_fragments = in_fragments

    def __getitem__(self, term: str) -> float:
        """Return a term's weight, 0 for one that never occurred."""
        return self._weights.get(term, 0.0)

    def total(self, terms: Iterable[str]) -> float:
        """Return the summed weight of distinct terms."""
        return sum(self[term] for term in terms)


def statement_weight(text: str, identifiers: int) -> float:
    """Return the factor for what a fragment says: decisions, failures, questions, exact names.

    Examples
    --------
    >>> statement_weight("It does not work.", 0) > statement_weight("It is nice.", 0)
    True
    """
    weight = 1.0 + _IDENTIFIER_BONUS * min(identifiers, 3)
    if _DECISION.search(text):
        weight *= 1.5
    if _NEGATIVE.search(text):
        weight *= 1.35
    if _QUESTION.search(text):
        weight *= 1.15
    return weight


def is_negative(text: str) -> bool:
    """Tell whether a fragment reports a failure or something that does not work."""
    return _NEGATIVE.search(text) is not None


def find_identifiers(text: str) -> list[str]:
    """Return the exact names in a text, in order: paths, URLs, addresses, codes, versions.

    Examples
    --------
    >>> find_identifiers("Run src/app.py and/or getUserById, see E1234 (v2.1) in 2024.")
    ['src/app.py', 'getUserById', 'E1234', 'v2.1']
    """
    found = []
    for match in _TOKEN.finditer(text):
        token = match.group().rstrip(_TRAILING)
        if 3 <= len(token) <= _LONGEST_IDENTIFIER and identifier_weight(token):
            found.append(token)
    return found


def identifier_weight(token: str) -> float:
    """Return how telling an exact name is on its own, 0 when the token is a word or a number."""
    if _MEASURE.fullmatch(token) or _TIMESTAMP.match(token) or "=" in token:
        return 0.0
    if "://" in token or ("@" in token[1:-1] and "." in token):
        return 1.0
    if "/" in token:
        return _path_weight(token)
    return min(_name_weight(token), 0.3 if len(token) > _LONGEST_TELLING_NAME else 1.0)


def _name_weight(token: str) -> float:
    """Weigh a name without slashes by its form."""
    forms = (
        (0.6, _CAMEL.search(token) and token.isalpha()),
        (0.5, token.isalpha() and token.isupper() and len(token) >= 5),
        (0.9, "_" in token.strip("_")),
        (0.8, _LETTER_AND_DIGIT.search(token)),
        (0.9, _DOTTED.fullmatch(token) and _FILE_ENDING.search(token)),
        (0.3, _DOTTED.fullmatch(token)),
    )
    return next((weight for weight, fits in forms if fits), 0.0)


def _path_weight(token: str) -> float:
    """Tell a path from alternatives such as and/or, and a file from a bare folder."""
    if not any(map(str.isalpha, token)):
        return 0.0
    if _FILE_ENDING.search(token):
        return 1.0
    is_rooted = token[0] in "/~." and token.count("/") > 1
    return 0.6 if is_rooted or any(mark in token.strip(".") for mark in "._-") else 0.0


def _spread(messages: int) -> float:
    """Return the worth of recurring in several messages; a single mention may be chance."""
    return 1.0 + math.log(messages) if messages > 1 else _SINGLE_MENTION_WEIGHT


def _script(term: str) -> float:
    return _LONE_CJK_WEIGHT if len(term) == 1 and not term.isascii() else 1.0
