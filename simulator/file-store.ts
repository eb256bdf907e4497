import { BoundedMap } from './bounded-map.ts'
import { storedFilesBytesMax, storedFilesMax } from './limits.ts'

export interface StoredFile {
  readonly id: string
  readonly filename: string
  readonly contentType: string
  readonly purpose: string
  readonly createdAt: Date
  readonly content: Buffer
}

/** Uploaded files, newest last. The oldest files are forgotten when there are too many. */
export class FileStore {
  readonly #files = new BoundedMap<StoredFile>(storedFilesMax, storedFilesBytesMax)

  add(file: StoredFile): void {
    this.#files.set(file.id, file, file.content.length)
  }

  find(id: string): StoredFile | undefined {
    return this.#files.get(id)
  }

  remove(id: string): boolean {
    return this.#files.delete(id)
  }

  newestFirst(): StoredFile[] {
    return this.#files.values().reverse()
  }
}
