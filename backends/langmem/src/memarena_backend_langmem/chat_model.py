"""Implements the chat model that LangMem calls: the gateway's, with the token of the call; replies are counted.

LangMem, and trustcall below it, log or drop replies that they cannot use, and retry failed calls hundreds of times. So
an error that must end an extraction is raised as a BaseException, which they do not catch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel  # type: ignore[import-not-found]
from langchain_core.messages import (  # type: ignore[import-not-found]
    AIMessage,
    BaseMessage,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult  # type: ignore[import-not-found]
from langchain_core.utils.function_calling import convert_to_openai_tool  # type: ignore[import-not-found]
from memarena_backend import Call, CallError, Endpoint, ModelClient, PromptRefusedError, ToolCall

MAX_REPLY_TOKENS = 1_024
"""Limit of the tokens of a reply."""
LONGEST_REPLY_CHARS = 65_536
"""Longer tool calls are ignored: a model that keeps to MAX_REPLY_TOKENS cannot have written them."""
MAX_CALLS = 5
"""Limit of model calls of an extraction; the library has none."""

Tools = Sequence[Mapping[str, Any]]


class Abandoned(BaseException):
    """An extraction ends early.

    ``error`` fails the whole RPC; None: only this extraction is abandoned.
    """

    def __init__(self, error: CallError | None) -> None:
        super().__init__("extraction abandoned")
        self.error = error


@dataclass
class CallCounts:
    """Counts of the model calls of one extraction."""

    calls: int = 0
    unusable: int = 0
    """Replies without a usable tool call."""


class GatewayModel:
    """The gateway's model for the duration of one RPC."""

    def __init__(self, client: ModelClient, endpoint: Endpoint, call: Call) -> None:
        self._client = client
        self._endpoint = endpoint
        self._call = call
        self.counts = CallCounts()
        """Counts of the present extraction; the caller replaces them before the next."""

    def ask(self, messages: Sequence[BaseMessage], tools: Tools, choice: Any) -> AIMessage:
        """Return the reply with its usable tool calls. Raises Abandoned."""
        if self.counts.calls >= MAX_CALLS:
            raise Abandoned(None)
        self.counts.calls += 1
        try:
            chat = self._client.chat(
                self._endpoint,
                convert_to_openai_messages(messages),
                self._call,
                max_tokens=MAX_REPLY_TOKENS,
                tools=tools,
                tool_choice=choice,
            )
        except PromptRefusedError as error:
            raise Abandoned(None) from error
        except CallError as error:
            raise Abandoned(error) from error
        usable_calls = [
            call for call in (usable(tool_call, tools) for tool_call in chat.tool_calls) if call is not None
        ]
        self.counts.unusable += 0 if usable_calls else 1
        calls = [
            {"name": name, "args": args, "id": f"call-{self.counts.calls}-{number}", "type": "tool_call"}
            for number, (name, args) in enumerate(usable_calls)
        ]
        return AIMessage(content=chat.text[:LONGEST_REPLY_CHARS], tool_calls=calls)


def usable(tool_call: ToolCall, tools: Tools) -> tuple[str, dict[str, Any]] | None:
    """Return name and arguments of a call that names a tool and has its required arguments; None for any other."""
    tool = next((tool["function"] for tool in tools if tool["function"]["name"] == tool_call.name), None)
    if tool is None or len(tool_call.arguments) > LONGEST_REPLY_CHARS:
        return None
    try:
        args = json.loads(tool_call.arguments)
        json.dumps(args, ensure_ascii=False).encode()  # raises for a lone surrogate
    except (ValueError, RecursionError):
        return None
    if not isinstance(args, dict) or not set(tool["parameters"].get("required", ())) <= set(args):
        return None
    if tool_call.name == "Memory" and not (isinstance(args["content"], str) and args["content"].strip()):
        return None
    return tool_call.name, args


def chat_model(ask: Callable[[Sequence[BaseMessage], Tools, Any], AIMessage]) -> BaseChatModel:
    """Return a chat model as LangMem expects it."""
    return _ChatModel(ask=ask)


class _ChatModel(BaseChatModel):  # type: ignore[misc]
    ask: Any

    @property
    def _llm_type(self) -> str:
        return "memarena-gateway"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any) -> Any:
        openai_tools = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=openai_tools, tool_choice=_choice(tool_choice, openai_tools), **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        tools: Tools = (),
        tool_choice: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.ask(messages, tools, tool_choice))])


def _choice(choice: str | None, tools: Tools) -> object:
    """Return the library's choice of tools in the form of the OpenAI API."""
    if choice == "any":
        return "required"
    if any(tool["function"]["name"] == choice for tool in tools):
        return {"type": "function", "function": {"name": choice}}
    return choice
