import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  numberFrom,
  oneOf,
  section,
  settingsByName,
  textLike,
  wholeNumberFrom,
  yesOrNo,
} from '../../src/kernel/settings.ts'

const settings = section({
  colour: oneOf(['red', 'green']),
  size: oneOf(['s', 'm'], 'must be "s" or "m"'),
  limits: section({ seconds: numberFrom(0.5, 600), days: wholeNumberFrom(1, 30) }),
  on: yesOrNo,
  shares: settingsByName(textLike(/^0\.\d$/, 'must be a share')),
})

function read(text: string): { readonly value: unknown; readonly problems: readonly string[] } {
  const problems: string[] = []
  const value = settings(JSON.parse(text), '', (name, problem) => problems.push(`${name} ${problem}`))
  return { value, problems }
}

test('good settings are taken as they are, and what is left out stays out', () => {
  for (const text of [
    '{}',
    '{"colour":"red","limits":{"seconds":0.5,"days":30},"on":false,"shares":{"a*":"0.1","__proto__":"0.2"}}',
  ]) {
    assert.deepEqual(read(text), { value: JSON.parse(text), problems: [] })
  }
})

const bad: readonly (readonly [text: string, ...problems: string[]])[] = [
  ['[]', ' Invalid input: expected object, received array'],
  ['null', ' Invalid input: expected object, received null'],
  ['{"limits":3}', 'limits Invalid input: expected object, received number'],
  ['{"colours":"red"}', 'colours is not a setting'],
  ['{"__proto__":{"on":true}}', '__proto__ is not a setting'],
  ['{"toString":1}', 'toString is not a setting'],
  [
    '{"limits":{"second":1,"days":0}}',
    'limits.days Too small: expected number to be >=1',
    'limits.second is not a setting',
  ],
  ['{"colour":"blue"}', 'colour Invalid option: expected one of "red"|"green"'],
  ['{"size":null}', 'size must be "s" or "m"'],
  ['{"limits":{"seconds":0.4}}', 'limits.seconds Too small: expected number to be >=0.5'],
  ['{"limits":{"seconds":601}}', 'limits.seconds Too big: expected number to be <=600'],
  ['{"limits":{"seconds":"1"}}', 'limits.seconds Invalid input: expected number, received string'],
  ['{"limits":{"seconds":1e999}}', 'limits.seconds Invalid input: expected number, received Infinity'],
  ['{"limits":{"days":1.5}}', 'limits.days Invalid input: expected int, received number'],
  ['{"limits":{"days":31}}', 'limits.days Too big: expected number to be <=30'],
  ['{"on":"true"}', 'on Invalid input: expected boolean, received string'],
  ['{"shares":["0.1"]}', 'shares Invalid input: expected record, received array'],
  ['{"shares":{"":"0.1"}}', 'shares. Invalid key in record'],
  [
    '{"shares":{"a":"1","b":0.1}}',
    'shares.a must be a share',
    'shares.b Invalid input: expected string, received number',
  ],
]
for (const [text, ...problems] of bad) {
  test(`${text} is refused by the setting's full name`, () => {
    assert.deepEqual(read(text).problems, problems)
  })
}
