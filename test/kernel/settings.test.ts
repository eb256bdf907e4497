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
  ['[]', ' must be an object, not a list'],
  ['null', ' must be an object, not null'],
  ['{"limits":3}', 'limits must be an object, not 3'],
  ['{"colours":"red"}', 'colours is not a setting (did you mean "colour"?)'],
  ['{"__proto__":{"on":true}}', '__proto__ is not a setting'],
  ['{"toString":1}', 'toString is not a setting'],
  [
    '{"limits":{"second":1,"days":0}}',
    'limits.days must be a whole number from 1 to 30, not 0',
    'limits.second is not a setting (did you mean "limits.seconds"?)',
  ],
  ['{"colour":"blue"}', 'colour must be one of "red", "green"'],
  ['{"size":null}', 'size must be "s" or "m"'],
  ['{"limits":{"seconds":0.4}}', 'limits.seconds must be a number from 0.5 to 600, not 0.4'],
  ['{"limits":{"seconds":601}}', 'limits.seconds must be a number from 0.5 to 600, not 601'],
  ['{"limits":{"seconds":"1"}}', 'limits.seconds must be a number from 0.5 to 600, not a text in quotes'],
  ['{"limits":{"seconds":1e999}}', 'limits.seconds must be a number from 0.5 to 600, not Infinity'],
  ['{"limits":{"days":1.5}}', 'limits.days must be a whole number, not 1.5'],
  ['{"limits":{"days":31}}', 'limits.days must be a whole number from 1 to 30, not 31'],
  ['{"on":"true"}', 'on must be true or false, not a text in quotes'],
  ['{"shares":["0.1"]}', 'shares must be an object, not a list'],
  ['{"shares":{"":"0.1"}}', 'shares. must have a name'],
  ['{"shares":{"a":"1","b":0.1}}', 'shares.a must be a share', 'shares.b must be a text, not 0.1'],
]
for (const [text, ...problems] of bad) {
  test(`${text} is refused by the setting's full name`, () => {
    assert.deepEqual(read(text).problems, problems)
  })
}
