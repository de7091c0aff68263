"""What is asked of a list as a whole, said in fidopt's words and in a JSON Schema alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True)
class Listed:
    """Annotates a tuple: whether it may be empty, and whether each value stands in it once.

    Pydantic's own ``min_length`` counts the sound values alone, and calls a list empty whose values are all unsound.
    """

    filled: bool = False
    distinct: bool = True

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:  # noqa: ANN401 - Pydantic's
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        asked = ({"minItems": 1} if self.filled else {}) | ({"uniqueItems": True} if self.distinct else {})
        return {**handler(schema), **asked}

    def _checked(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.filled and not values:
            msg = "must not be empty"
            raise ValueError(msg)
        twice = list(dict.fromkeys(str(value) for value in values if values.count(value) > 1))
        if self.distinct and twice:
            msg = f"must name each once ({', '.join(twice)})"
            raise ValueError(msg)
        return values


#: A list that names each once.
DISTINCT = Listed()
#: A list that names each once, and at least one.
SOME = Listed(filled=True)
#: A list of at least one.
FILLED = Listed(filled=True, distinct=False)
