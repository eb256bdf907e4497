import * as device from './device.ts'
import { endpoint, type OwnEndpoint } from './endpoint.ts'
import * as members from './members.ts'
import * as people from './people.ts'

export const PEOPLE_ENDPOINTS: readonly OwnEndpoint[] = [
  endpoint('GET', '/gateway/v1/people', 'list_people', 'viewer', 'many', people.listPeople),
  endpoint('GET', '/gateway/v1/people/{id}', 'get_person', 'member', 'of_id', people.getPerson, {
    nouns: ['person'],
  }),
  endpoint('PATCH', '/gateway/v1/people/{id}', 'update_person', 'admin', 'of_id', people.updatePerson, {
    nouns: ['person'],
  }),
  endpoint('POST', '/gateway/v1/people/{id}/block', 'block_person', 'admin', 'of_id', people.blockPerson, {
    nouns: ['person'],
    isUnlimited: true,
  }),
  endpoint(
    'POST',
    '/gateway/v1/people/{id}/unblock',
    'unblock_person',
    'admin',
    'of_id',
    people.unblockPerson,
    { nouns: ['person'] },
  ),
  endpoint('POST', '/gateway/v1/people/{id}/move', 'move_person', 'operator', 'of_id', people.movePerson, {
    nouns: ['person'],
  }),
  endpoint('GET', '/gateway/v1/members', 'get_members', 'viewer', 'one', members.getMembers),
  endpoint('PATCH', '/gateway/v1/members', 'update_members', 'admin', 'one', members.updateMembers),
  endpoint('POST', '/gateway/v1/device', 'decide_device', 'admin', 'one', device.decideDevice, {
    isForOwn: true,
  }),
]
