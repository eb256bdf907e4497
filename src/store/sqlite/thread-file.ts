/** Source runs as .ts, the published package as .js: a thread's file has the ending of this one. */
export function threadFile(name: string): URL {
  return new URL(`./${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)
}
