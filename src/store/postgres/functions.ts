import { createHash } from 'node:crypto'
import { admission } from './functions/admission.ts'
import { nodes } from './functions/nodes.ts'
import { holdFloors, settlement } from './functions/settlement.ts'
import { webhooks } from './functions/webhooks.ts'

/**
 * What runs inside the database. These texts may be edited: a start finds by the hash that they have changed and
 * applies all of them again, after the migrations and in the same transaction. One whose arguments or answer change is
 * dropped first, in its text. Nodes of the version before still run and call them, so they answer as before; and if one
 * of those starts again it applies its own. Where that would be wrong, a migration goes with the change, an empty one
 * if need be: a node that does not know the schema version does not start.
 */
export const FUNCTIONS = [admission, holdFloors, webhooks, settlement, nodes].join('\n')

export const FUNCTIONS_HASH = createHash('sha256').update(FUNCTIONS).digest('hex')
