import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The pages whose examples are run or parsed, because users copy from them. */
export const PAGES: readonly string[] = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `docs/${name}`),
]

/** A fenced block of a page, also within a list item. */
export interface Block {
  readonly page: string
  readonly section: string
  /** The line number of the block's first line of text. */
  readonly line: number
  /** The first word of the info string, or '' without one. */
  readonly language: string
  readonly text: string
  /** `no-run: <reason>` in the info string, which the rendered page hides: why the block is not run. */
  readonly noRun: string | null
  /** `refused: <status>`: the block shows a refusal, and fails on any other status. */
  readonly refused: string | null
}

export function readBlocks(page: string): Block[] {
  const lines = readFileSync(join(root, page), 'utf8').split('\n')
  const blocks: Block[] = []
  let section = ''
  for (let at = 0; at < lines.length; at += 1) {
    section = /^#+ (.+)$/.exec(lines[at] ?? '')?.[1] ?? section
    const [, indent = '', info] = /^( *)```(.*)$/.exec(lines[at] ?? '') ?? []
    if (info === undefined) continue
    const end = lines.indexOf(`${indent}\`\`\``, at + 1)
    if (end === -1) throw new Error(`${page}:${at + 1}: this block does not end`)
    const text = lines.slice(at + 1, end).map((line) => `${line.slice(indent.length)}\n`)
    blocks.push({ page, section, line: at + 2, text: text.join(''), ...readInfo(info) })
    at = end
  }
  return blocks
}

function readInfo(info: string): Pick<Block, 'language' | 'noRun' | 'refused'> {
  const parts = /^(\S*)(?: (no-run|refused): (\S.*))?$/.exec(info)
  if (parts === null) throw new Error(`"${info}" is neither a language nor one with a marker`)
  const [, language = '', marker, said = ''] = parts
  return { language, noRun: marker === 'no-run' ? said : null, refused: marker === 'refused' ? said : null }
}
