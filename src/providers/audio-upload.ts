import type { Borrowed } from '../kernel/read-buffer.ts'
import { AudioClock } from '../metering/audio-clock.ts'
import { looseName, type PartHead, type PartSink } from '../metering/multipart-scanner.ts'
import { assumedUploadMs, uploadMsMost } from './audio-estimate.ts'

/**
 * Looks at the audio file of a transcription request as it passes. Which of several files upstream would take is not
 * known; the longest counts.
 */
export class AudioUpload implements PartSink {
  #clock: AudioClock | null = null
  #longestMs: number | null = null

  open(head: PartHead): boolean {
    this.#keep()
    const isFile = head.isFile || looseName(head.name) === 'file'
    this.#clock = isFile ? new AudioClock() : null
    return isFile
  }

  write(bytes: Borrowed): void {
    this.#clock?.write(bytes)
  }

  /** How long it is, or may be if its format is unknown; null if there is no file. To be asked when all has passed. */
  get milliseconds(): number | null {
    this.#keep()
    return this.#longestMs
  }

  #keep(): void {
    const clock = this.#clock
    if (clock === null) return
    const told = clock.milliseconds ?? assumedUploadMs(clock.bytes)
    this.#longestMs = Math.max(this.#longestMs ?? 0, Math.min(told, uploadMsMost(clock.bytes)))
  }
}
