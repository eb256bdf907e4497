/** The TOML values that are read: strings, integers, booleans and lists of these. */
type Value = string | number | boolean | readonly Value[]

export interface Table {
  [key: string]: Value | Table
}

/** Reads the TOML of agents' configuration files. Other syntax throws, so that such examples are noticed. */
export function readToml(text: string): Table {
  const root: Table = {}
  let table = root
  for (const line of text.split('\n').map((each) => each.trim())) {
    if (line === '' || line.startsWith('#')) continue
    const path = /^\[([\w.-]+)\]$/.exec(line)?.[1]
    const [, key, value] = /^([\w-]+) = (.+)$/.exec(line) ?? []
    if (path !== undefined) {
      table = root
      for (const name of path.split('.')) {
        table[name] ??= {}
        table = table[name] as Table
      }
    } else if (key !== undefined && value !== undefined && !Object.hasOwn(table, key)) {
      table[key] = JSON.parse(value) as Value
    } else throw new Error(`this line of TOML cannot be read: ${line}`)
  }
  return root
}
