/** The little SVG that charts need. Colours follow the reader's light or dark page. */

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 15px; }
  .panel { font-weight: 600; }
  .faint { fill: #59636e; }
  .bar { fill: #8c959f; }
  .own { fill: #0969da; }
  .spread { stroke: #1f2328; stroke-width: 1; fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .faint { fill: #9198a1; }
    .bar { fill: #656c76; }
    .own { fill: #4493f8; }
    .spread { stroke: #f0f6fc; }
  }`

export function svgDocument(title: string, width: number, height: number, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${title}</title>`,
    `<style>${STYLE}\n</style>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

export function svgText(x: number, y: number, text: string, classes = '', anchor = 'start'): string {
  return `<text x="${round(x)}" y="${round(y)}" class="${classes}" text-anchor="${anchor}">${escapeText(text)}</text>`
}

export function svgRect(x: number, y: number, width: number, height: number, classes: string): string {
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" class="${classes}"/>`
}

export function svgLine(points: readonly (readonly [x: number, y: number])[], classes: string): string {
  return `<polyline points="${points.map(([x, y]) => `${round(x)},${round(y)}`).join(' ')}" class="${classes}"/>`
}

const round = (value: number): number => Math.round(value * 10) / 10

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
