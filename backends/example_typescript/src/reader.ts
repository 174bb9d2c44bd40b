/** Asking the reader through the gateway: a prompt that fits, one streamed call, the words as they come (ANS, MOD). */

import { status } from '@grpc/grpc-js';
import { CallError } from './errors.js';
import { FINISH, PROMPT_STYLE, THINKING } from './wire.js';
import type { MemoryItem, Model, ModelAccess, Reading, SearchRequest } from './wire.js';

const TASK = 'Answer the question from the memories below. If they do not tell, say that you do not know.';
const BYTES_PER_TOKEN_AT_LEAST = 2;
/** Tokens kept free for what a chat template adds. */
const TEMPLATE_TOKENS = 32;
const TOKENS_PER_JOINT = 2;

interface Message { role: string; content: string }

export interface Reply { text: string; finish_reason: number; usage?: { prompt_tokens: number; completion_tokens: number } }

/** The messages, with as many of the first items as fit into the window. Throws CallError if not even the question does. */
export async function promptFor(
  question: SearchRequest, items: readonly MemoryItem[], reading: Reading, model: Model, access: ModelAccess,
  signal: AbortSignal,
): Promise<Message[]> {
  const asked = `It is ${question.asked_at}.\nQuestion: ${question.text}`;
  const blocks = items.map((item) => block(item, reading.prompt_style));
  const room = model.context_window_tokens - reading.max_tokens - TEMPLATE_TOKENS;
  let kept = blocks.length;
  if (model.context_window_tokens > 0) {
    const [task = 0, ask = 0, ...each] = await counts([TASK, asked, ...blocks], model, access, signal);
    let used = task + ask + 2 * TOKENS_PER_JOINT;
    if (used > room) {
      throw new CallError(
        status.RESOURCE_EXHAUSTED, `the question takes ${used} tokens, there is room for ${room}`, 'search.text');
    }
    const first = each.findIndex((count) => (used += count + TOKENS_PER_JOINT) > room);
    kept = first === -1 ? blocks.length : first;
  }
  const shown = blocks.slice(0, kept);
  const memories = reading.prompt_style === PROMPT_STYLE.JSON_CONTEXT ? `[${shown.join(',\n')}]` : shown.join('\n');
  return model.no_system_role
    ? [{ role: 'user', content: `${TASK}\n${memories}\n${asked}` }]
    : [{ role: 'system', content: TASK }, { role: 'user', content: `${memories}\n${asked}` }];
}

function block(item: MemoryItem, style: number): string {
  return style === PROMPT_STYLE.JSON_CONTEXT
    ? JSON.stringify({ time: item.time, text: item.text })
    : `- ${item.time} ${item.text}`;
}

async function counts(
  texts: readonly string[], model: Model, access: ModelAccess, signal: AbortSignal,
): Promise<number[]> {
  if (!model.counts_tokens) {
    return texts.map((text) => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN_AT_LEAST));
  }
  const response = await post('tokenize', { model: model.name, texts }, access, signal);
  const { counts: counted } = (await response.json()) as { counts?: unknown };
  if (!Array.isArray(counted) || counted.length !== texts.length) {
    throw new CallError(status.INTERNAL, 'the gateway returned no token counts');
  }
  return counted.map(Number);
}

/** Asks and tells `onDelta` of every piece of text at once. Throws CallError: a failure never looks like a reply. */
export async function ask(
  messages: readonly Message[], reading: Reading, access: ModelAccess, signal: AbortSignal,
  onDelta: (text: string) => void,
): Promise<Reply> {
  const thinking = reading.thinking === THINKING.ON || reading.thinking === THINKING.OFF
    ? { chat_template_kwargs: { enable_thinking: reading.thinking === THINKING.ON } }
    : {};
  const body = {
    model: reading.model, messages, max_tokens: reading.max_tokens, temperature: reading.temperature,
    seed: Number(reading.seed.toString()), stream: true, stream_options: { include_usage: true }, ...thinking,
  };
  const response = await post('chat/completions', body, access, signal);
  const texts: string[] = [];
  let finish: string | undefined;
  let usage: Reply['usage'];
  for await (const chunk of chunks(response)) {
    const choice = chunk.choices?.[0];
    const text = choice?.delta?.content;
    if (text) {
      texts.push(text);
      onDelta(text);
    }
    finish = choice?.finish_reason ?? finish;
    if (chunk.usage) {
      usage = { prompt_tokens: chunk.usage.prompt_tokens, completion_tokens: chunk.usage.completion_tokens };
    }
  }
  if (finish === undefined) {
    throw new CallError(status.UNAVAILABLE, 'the reader ended its stream before its reply was complete');
  }
  const reason = finish === 'stop' ? FINISH.STOP : finish === 'length' ? FINISH.LENGTH : FINISH.UNKNOWN;
  return { text: texts.join(''), finish_reason: reason, ...(usage ? { usage } : {}) };
}

interface Chunk {
  choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
}

/** Server-sent events: JSON in one or more `data:` lines and an empty line each, until `data: [DONE]`. */
async function* chunks(response: Response): AsyncGenerator<Chunk> {
  const decoder = new TextDecoder();
  let rest = '';
  let data: string[] = [];
  try {
    for await (const bytes of response.body ?? []) {
      rest += decoder.decode(bytes as Uint8Array, { stream: true });
      const lines = rest.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line.startsWith('data:')) {
          data.push(line.slice('data:'.length).trim());
        } else if (line.trim() === '' && data.length > 0) {
          const event = data.join('\n');
          data = [];
          if (event === '[DONE]') {
            return;
          }
          yield JSON.parse(event) as Chunk;
        }
      }
    }
  } catch (error) {
    throw unreachable(error);
  }
}

async function post(path: string, body: object, access: ModelAccess, signal: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`${access.base_url.replace(/\/$/, '')}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${access.token}` },
      body: JSON.stringify(body),
      redirect: 'manual', // the token goes to the gateway alone (SEC-6)
      signal,
    });
  } catch (error) {
    throw unreachable(error);
  }
  if (!response.ok) {
    const said = (await response.text()).slice(0, 300);
    // 5xx: the model's server is at fault and may come back; 4xx: this backend asked for what it may not.
    const code = response.status >= 500 ? status.UNAVAILABLE : status.INTERNAL;
    throw new CallError(code, `the gateway answered ${response.status} to ${path}: ${said}`);
  }
  return response;
}

function unreachable(error: unknown): CallError {
  const reason = error instanceof Error ? String(error.cause ?? error.message) : String(error);
  return new CallError(status.UNAVAILABLE, `the reader could not be reached or broke off: ${reason}`);
}
