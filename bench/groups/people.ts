import { type FillContent, personId } from '../fill-plan.ts'
import { type Group, type Plan, shortCount } from './group.ts'
import { admissionCase } from './keys.ts'
import { reportsCase } from './usage.ts'

const KEYS_EACH = 3

const contentOf = (people: number): FillContent => ({
  keys: people * KEYS_EACH,
  people,
  calls: 0,
  allUsedToday: true,
})

/** Reports that an admin asks for: the list of people, and the keys and the usage of one person. */
function reportsOn(people: number): string[] {
  const person = personId(Math.floor(people / 2))
  const today = new Date().toISOString().slice(0, 10)
  return [
    '/gateway/v1/people?limit=20',
    `/gateway/v1/people/${person}`,
    `/v1/keys?limit=20&person=${person}`,
    `/v1/usage?start=${today}&end=${today}&person=${person}&group_by=key`,
    `/gateway/v1/requests?limit=20&person=${person}`,
  ]
}

/** Whether admission and reports get slower with the number of people. */
export function peopleGroup(plan: Plan): Group {
  return {
    title: `Admission and reports with ${plan.sizes.people.map(shortCount).join(' and ')} people`,
    cases: plan.sizes.people.flatMap((people) =>
      plan.tollgates.flatMap((parts) => {
        const [name, content] = [`people-${shortCount(people)}`, contentOf(people)]
        return [
          admissionCase(plan, parts, `${name}-admission`, content, KEYS_EACH * 10),
          reportsCase(plan, parts, `${name}-reports`, content, reportsOn(people)),
        ]
      }),
    ),
  }
}
