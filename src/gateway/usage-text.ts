import type { Quantities, Usage, UsagePart } from '../kernel/usage.ts'

/** Usage as it is kept with a call: the JSON that `JSON.stringify` writes, in a third of its time. */
export function writeUsage(usage: Usage): string {
  let parts = ''
  for (const part of usage.parts) parts += parts === '' ? partText(part) : `,${partText(part)}`
  return (
    `{"parts":[${parts}],"modelServed":${text(usage.modelServed)},"serviceTier":${text(usage.serviceTier)},` +
    `"speed":${text(usage.speed)},"geography":${text(usage.geography)},"stopReason":${text(usage.stopReason)},` +
    `"freeRefusal":${usage.freeRefusal},"suspect":${usage.suspect}}`
  )
}

function partText({ model, quantities, promptTokens }: UsagePart): string {
  return `{"model":${text(model)},"quantities":{${quantitiesText(quantities)}},"promptTokens":${promptTokens}}`
}

/** The names are units, of which none needs an escape. */
function quantitiesText(quantities: Quantities): string {
  let members = ''
  for (const unit in quantities) {
    const quantity = quantities[unit as keyof Quantities]
    if (quantity !== undefined) members += `${members === '' ? '' : ','}"${unit}":${quantity}`
  }
  return members
}

/** Names of models and the like, nearly all of them plain. */
const PLAIN = /^[\w.:/@ -]*$/

function text(value: string | null): string {
  if (value === null) return 'null'
  return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value)
}
