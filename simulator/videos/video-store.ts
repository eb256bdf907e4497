import { BoundedMap } from '../bounded-map.ts'
import type { JsonObject } from '../json.ts'
import { storedVideosMax } from '../limits.ts'
import type { WorkClock } from '../work-clock.ts'

export interface Video {
  readonly id: string
  readonly createdAt: Date
  /** When the video's work began, by the work clock. */
  readonly startedMs: number
  readonly model: string
  readonly prompt: string
  /** Seconds of the whole video: an extension includes its source. */
  readonly seconds: number
  /** Seconds that are made anew. */
  readonly newSeconds: number
  readonly size: string
  readonly remixedFrom: string | null
  /** The error that the video fails with when its work is over; null for a video that succeeds. */
  readonly failure: JsonObject | null
}

const queuedMs = 2_000
const workBaseMs = 5_000
const workPerSecondMs = 2_500
const daySeconds = 86_400

export class VideoStore {
  readonly #videos = new BoundedMap<Video>(storedVideosMax)

  add(video: Video): void {
    this.#videos.set(video.id, video)
  }

  find(id: string): Video | undefined {
    return this.#videos.get(id)
  }

  remove(id: string): boolean {
    return this.#videos.delete(id)
  }

  newestFirst(): Video[] {
    return this.#videos.values().reverse()
  }
}

export type VideoStatus = 'queued' | 'in_progress' | 'completed' | 'failed'

function workMs({ newSeconds }: Video): number {
  return workBaseMs + newSeconds * workPerSecondMs
}

export function statusOf(video: Video, clock: WorkClock): VideoStatus {
  const elapsedMs = clock.elapsedMs(video.startedMs)
  if (elapsedMs < queuedMs) return 'queued'
  if (elapsedMs < queuedMs + workMs(video)) return 'in_progress'
  return video.failure === null ? 'completed' : 'failed'
}

export function videoJson(video: Video, status: VideoStatus, clock: WorkClock): JsonObject {
  const createdAt = Math.floor(video.createdAt.getTime() / 1000)
  const completedAt = createdAt + Math.ceil((queuedMs + workMs(video)) / 1000)
  const workedMs = clock.elapsedMs(video.startedMs) - queuedMs
  const isCompleted = status === 'completed'
  return {
    id: video.id,
    object: 'video',
    created_at: createdAt,
    completed_at: isCompleted ? completedAt : null,
    expires_at: isCompleted ? completedAt + daySeconds : null,
    status,
    model: video.model,
    progress: isCompleted ? 100 : status === 'in_progress' ? Math.floor((100 * workedMs) / workMs(video)) : 0,
    prompt: video.prompt,
    remixed_from_video_id: video.remixedFrom,
    seconds: String(video.seconds),
    size: video.size,
    error: status === 'failed' ? video.failure : null,
  }
}
