/** What whoever answers remembers from one request of a connection to the next. It ends with the connection. */
export interface ConnectionMemory {
  lastKey: { readonly text: string; readonly digest: Buffer } | null
}
