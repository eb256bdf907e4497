/** Parses CSV by RFC 4180 and fails on anything the RFC does not allow. Returns rows of cells. */
export function readCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let at = 0
  while (at < text.length) {
    const cell = readCell(text, at)
    row.push(cell.value)
    at = cell.end
    if (text[at] === ',') at += 1
    else if (text.startsWith('\r\n', at)) {
      rows.push(row)
      row = []
      at += 2
    } else throw new Error(`neither a comma nor a line end at ${at}: ${text.slice(at, at + 20)}`)
  }
  if (row.length > 0) throw new Error('the last line has no end')
  return rows
}

function readCell(text: string, start: number): { readonly value: string; readonly end: number } {
  if (text[start] !== '"') {
    const end = text.slice(start).search(/[",\r\n]/)
    if (end === -1) throw new Error('the last line has no end')
    return { value: text.slice(start, start + end), end: start + end }
  }
  const rest = /^"((?:[^"]|"")*)"/.exec(text.slice(start))
  if (rest === null) throw new Error(`a quoted cell has no end: ${text.slice(start, start + 20)}`)
  return { value: (rest[1] ?? '').replaceAll('""', '"'), end: start + rest[0].length }
}
