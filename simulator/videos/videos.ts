import type { Call } from '../call.ts'
import { missing, parseChatBody, requireModel } from '../chat/chat-body.ts'
import { chatHeaders } from '../chat/chat-headers.ts'
import { isForm, parseForm } from '../chat/form-body.ts'
import { imageMakers } from '../images.ts'
import { asText, isObject, type JsonObject } from '../json.ts'
import { pageAfter } from '../pages.ts'
import { Refusal } from '../refusal.ts'
import { bytesReply, jsonReply, type Reply } from '../reply.ts'
import { statusOf, type Video, videoJson } from './video-store.ts'

const modelDefault = 'sora-2'
const sizeDefault = '720x1280'
const secondsDefault = 4
const sizes = ['720x1280', '1280x720']
const highSizes = ['1024x1792', '1792x1024']
const newSeconds = [4, 8, 12]
const addedSeconds = [4, 8, 12, 16, 20]
/** The length that a video which was not made here is taken to have. */
const uploadedSeconds = 8
const pageSizeMax = 100
const pageSizeDefault = 20

/** POST /v1/videos, as a form or as JSON. */
export function createVideo(call: Call): Reply {
  const { body } = readBody(call)
  const model = requireModel(body['model'] ?? modelDefault, 'v1/videos', ['video'])
  const size = asText(body['size'] ?? sizeDefault)
  const played = model.id === modelDefault ? sizes : [...sizes, ...highSizes]
  if (!played.includes(size)) throw invalidValue('size', size, played)
  const seconds = readSeconds(body, newSeconds, secondsDefault)
  return start(call, body, {
    model: asText(body['model'] ?? modelDefault),
    seconds,
    newSeconds: seconds,
    size,
    remixedFrom: null,
  })
}

/** POST /v1/videos/{id}/remix */
export function remixVideo(call: Call): Reply {
  const { body } = readBody(call)
  const source = requireCompleted(call, call.params[0] ?? '')
  const { model, seconds, size } = source
  return start(call, body, { model, seconds, newSeconds: seconds, size, remixedFrom: source.id })
}

/** POST /v1/videos/edits: edits a video that was made here, or an upload. */
export function editVideo(call: Call): Reply {
  const { body, source } = readBody(call)
  const { model, seconds, size } = source ?? uploaded
  return start(call, body, { model, seconds, newSeconds: seconds, size, remixedFrom: null })
}

/** POST /v1/videos/extensions: the new video includes the old video. */
export function extendVideo(call: Call): Reply {
  const { body, source } = readBody(call)
  const { model, seconds, size } = source ?? uploaded
  if (body['seconds'] === undefined) throw missing('seconds')
  const added = readSeconds(body, addedSeconds, 0)
  return start(call, body, { model, seconds: seconds + added, newSeconds: added, size, remixedFrom: null })
}

/** GET /v1/videos */
export function listVideos(call: Call): Reply {
  const limit = Number(call.query.get('limit') ?? pageSizeDefault)
  if (!Number.isInteger(limit) || limit < 0 || limit > pageSizeMax) {
    throw new Refusal(400, `Invalid 'limit': expected 0 to ${pageSizeMax}.`, { param: 'limit' })
  }
  const newest = call.memory.videos.newestFirst()
  const ordered = call.query.get('order') === 'asc' ? newest.reverse() : newest
  const { page, hasMore } = pageAfter(ordered, call.query.get('after'), limit)
  const data = page.map((video) => videoJson(video, statusOf(video, call.clock), call.clock))
  const ends = { first_id: page[0]?.id ?? null, last_id: page.at(-1)?.id ?? null }
  return reply(call, { object: 'list', data, ...ends, has_more: hasMore })
}

/** GET /v1/videos/{id} */
export function getVideo(call: Call): Reply {
  const video = requireVideo(call, call.params[0] ?? '')
  return reply(call, videoJson(video, statusOf(video, call.clock), call.clock))
}

/** DELETE /v1/videos/{id}: deletes a video whose work is over. */
export function deleteVideo(call: Call): Reply {
  const video = requireVideo(call, call.params[0] ?? '')
  const status = statusOf(video, call.clock)
  if (status === 'queued' || status === 'in_progress') {
    throw new Refusal(409, `A video with status '${status}' cannot be deleted.`)
  }
  call.memory.videos.remove(video.id)
  return reply(call, { id: video.id, object: 'video.deleted', deleted: true })
}

/** GET /v1/videos/{id}/content: a file that begins like a video, and has nothing to look at. */
export function getVideoContent(call: Call): Reply {
  const video = requireCompleted(call, call.params[0] ?? '')
  const headers = chatHeaders(call.identity)
  const variant = call.query.get('variant') ?? 'video'
  if (variant === 'video') return bytesReply('video/mp4', mp4(video), headers)
  const kind = { thumbnail: 'webp', spritesheet: 'jpeg' }[variant]
  const make = imageMakers.get(kind ?? '')
  if (make === undefined) throw invalidValue('variant', variant, ['video', 'thumbnail', 'spritesheet'])
  return bytesReply(`image/${kind}`, make(video.prompt), headers)
}

const uploaded = { model: modelDefault, seconds: uploadedSeconds, size: sizeDefault }

type Asked = Pick<Video, 'model' | 'seconds' | 'newSeconds' | 'size' | 'remixedFrom'>

function start(call: Call, body: JsonObject, asked: Asked): Reply {
  const prompt = asText(body['prompt'])
  if (prompt === '') throw missing('prompt')
  const blocked = {
    code: 'moderation_blocked',
    message: 'Your request was blocked by our moderation system.',
  }
  const video: Video = {
    ...asked,
    model: call.behaviours.model ?? asked.model,
    id: `video_${call.identity.hex(48)}`,
    createdAt: call.identity.now(),
    startedMs: call.clock.nowMs(),
    prompt,
    failure: call.behaviours.refusal === true ? blocked : null,
  }
  call.memory.videos.add(video)
  return reply(call, videoJson(video, 'queued', call.clock))
}

/** The members of JSON or the fields of a form, and the completed video that they name as their source. */
function readBody(call: Call): { readonly body: JsonObject; readonly source: Video | null } {
  if (!isForm(call)) {
    const body = parseChatBody(call)
    const { video } = body
    return { body, source: isObject(video) ? requireCompleted(call, asText(video['id'])) : null }
  }
  const { fields } = parseForm(call)
  const id = fields['video[id]']
  return { body: fields, source: typeof id === 'string' ? requireCompleted(call, id) : null }
}

/** Upstream writes seconds as a string; a number is as good. */
function readSeconds(body: JsonObject, allowed: readonly number[], initial: number): number {
  const stated = body['seconds'] ?? initial
  const seconds = typeof stated === 'string' && /^\d+$/.test(stated) ? Number(stated) : stated
  if (seconds === initial && body['seconds'] === undefined) return initial
  if (typeof seconds === 'number' && allowed.includes(seconds)) return seconds
  throw invalidValue('seconds', stated, allowed)
}

function invalidValue(param: string, value: unknown, allowed: readonly unknown[]): Refusal {
  const supported = allowed.map((each) => `'${each}'`).join(', ')
  return new Refusal(400, `Invalid value: '${String(value)}'. Supported values are: ${supported}.`, {
    param,
    code: 'invalid_value',
  })
}

function requireVideo(call: Call, id: string): Video {
  const video = call.memory.videos.find(id)
  if (video === undefined) throw new Refusal(404, `Video with id '${id}' not found.`, { param: 'video_id' })
  return video
}

function requireCompleted(call: Call, id: string): Video {
  const video = requireVideo(call, id)
  if (statusOf(video, call.clock) === 'completed') return video
  throw new Refusal(400, `Video '${id}' is not completed.`, { param: 'video_id' })
}

function mp4({ id, seconds }: Video): Buffer {
  const box = Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41', 'latin1')
  return Buffer.concat([box, Buffer.from(`${id} ${seconds} s`)])
}

function reply(call: Call, body: object): Reply {
  return jsonReply(200, body, { headers: chatHeaders(call.identity) })
}
