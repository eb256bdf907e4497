/** Other spellings of an upstream path, each of which some server takes for the path itself. */
export function spellingsOf(path: string): string[] {
  const last = path.lastIndexOf('/') + 1
  const escaped = (at: number) =>
    `${path.slice(0, at)}%${path.charCodeAt(at).toString(16)}${path.slice(at + 1)}`
  const behindV1 = path.slice('/v1'.length)
  return [
    `${path}/`,
    `${path}%2f`,
    `${path}%2F%2F`,
    `${path};`,
    `${path};a=b`,
    `${path}%3ba=b`,
    `${path}.json`,
    `${path}.XML`,
    `${path}/.json`,
    `${path}%20`,
    `${path}%00`,
    path.toUpperCase(),
    `${path.slice(0, last)}${path.charAt(last).toUpperCase()}${path.slice(last + 1)}/`,
    escaped(1),
    escaped(last),
    escaped(path.length - 1),
    escaped(last).replaceAll('%', '%25'),
    escaped(last).replaceAll('%', '%252525'),
    escaped(last - 1),
    `${escaped(last)}/;x=1`,
    behindV1,
    `${behindV1}/`,
    `/v1${path}`,
    `/v1/V1${path}`,
    `/%76%31${behindV1}.json/`,
  ]
}
