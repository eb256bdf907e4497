import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { roughTokens } from '../../src/metering/rough-tokens.ts'
import { countMessagesTokens } from '../../src/metering/token-counter.ts'
import { realTokens } from './real-tokens.ts'

const TEXTS: Readonly<Record<string, string>> = {
  English: readFileSync(new URL('../../docs/ARCHITECTURE.md', import.meta.url), 'utf8'),
  code: readFileSync(new URL('../../src/metering/json-walker.ts', import.meta.url), 'utf8'),
  JSON: JSON.stringify({ model: 'gpt-4o', prices: [1.25, 10, 0.125], tiers: { flex: '0.5', priority: '2' } }),
  German: 'Die Würde des Menschen ist unantastbar. Sie zu achten ist Verpflichtung aller staatlichen Gewalt.',
  Vietnamese: 'Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.',
  Russian: 'Все люди рождаются свободными и равными в своем достоинстве и правах.',
  Arabic: 'يولد جميع الناس أحراراً متساوين في الكرامة والحقوق.',
  Hindi: 'सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।',
  Thai: 'มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ',
  Chinese: '人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。',
  Japanese: 'すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。',
  Korean: '모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.',
  emoji: '😀🎉🚀👩‍👩‍👧🔥🥳🦄🍕',
}

test('a rough count is rather a little high than low, whatever the script', () => {
  for (const [name, text] of Object.entries(TEXTS)) {
    const share = roughTokens([text], 'chat') / realTokens(text)
    assert.ok(share >= 0.95 && share <= 2.1, `${name}: ${share.toFixed(2)}`)
  }
})

test('Messages text is taken at 3.5 characters a token where they are ASCII, rounded up, and at one where they are ideographs', () => {
  assert.equal(countMessagesTokens([]), 0)
  assert.equal(countMessagesTokens(['x'.repeat(7)]), 2)
  assert.equal(countMessagesTokens(['x'.repeat(7), '.']), 3)
  assert.equal(countMessagesTokens(['世'.repeat(7)]), 7)
})
