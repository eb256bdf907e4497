import type {
  AccountStatus,
  AdminRole,
  BudgetMode,
  PersonRole,
  PersonStatus,
} from '../../kernel/vocabulary.ts'
import type { DeviceCodeStatus } from '../../keys/device-store.ts'
import type { Metadata } from '../../keys/key-store.ts'
import { column } from '../columns.ts'
import { table } from '../table.ts'

/** Accounts, budgets, keys and what belongs to the installation. Amounts are nanodollars, times are milliseconds (UTC). */

const { amount, bytes, flag, integer, json, text } = column

export const ACCOUNTS_TABLES = {
  setting: table('setting', {
    columns: {
      name: text,
      value: text,
    },
    key: ['name'],
  }),

  /** Balance and holds are sums over `call` and `credit`, updated in the transaction that changes these tables. */
  account: table('account', {
    columns: {
      id: text,
      name: text.default('default'),
      // As of api_key.
      nameUpper: text.default('DEFAULT'),
      createdAtMs: integer,
      status: text.of<AccountStatus>().default('active'),
      // Whether there is another account: then a credential of the installation is shared.
      hasOthers: flag.default(false),
      discountBillionths: integer.orNull(),
      metadata: json<Metadata>().orNull(),
      // Upstreams of its own, with their keys as ciphertext in base 64.
      messagesUrl: text.orNull(),
      messagesKey: text.orNull(),
      chatUrl: text.orNull(),
      chatKey: text.orNull(),
      creditedNanos: amount.default(0n),
      chargedNanos: amount.default(0n),
      // Open holds, each as far as it counts against the account.
      heldNanos: amount.default(0n),
      // The rest of their bounds, which does not count because their keys have less left.
      shortNanos: amount.default(0n),
      // Raised by each change of a column that admissions decide by, so that a batch which read the row before notices.
      termsVersion: integer.default(0),
      creditEnforced: flag.default(false),
      monthlyBudgetNanos: amount.orNull(),
      // The month that spent_nanos is of.
      month: text.default(''),
      spentNanos: amount.default(0n),
    },
    key: ['id'],
    isHot: true,
  }),

  budget: table('budget', {
    columns: {
      id: text,
      accountId: text.references('account'),
      monthlyBudgetNanos: amount.orNull(),
      dailyBudgetNanos: amount.orNull(),
      requestsPerMinute: integer.orNull(),
      // exact or settled; null: as the installation is configured.
      budgetMode: text.of<BudgetMode>().orNull(),
      // The month that the counters are of; a later month resets them. Holds count against month and day.
      month: text.default(''),
      spentNanos: amount.default(0n),
      heldNanos: amount.default(0n),
      lostNanos: amount.default(0n),
      // The largest amount of the month by which a cost exceeded its bound. Holds are larger by it.
      overrunNanos: amount.default(0n),
      day: text.default(''),
      daySpentNanos: amount.default(0n),
      // The minute, counted from 1970, that minute_requests were admitted in.
      minute: integer.default(0),
      minuteRequests: integer.default(0),
    },
    key: ['id'],
    indexes: {
      budget_capped: { columns: ['accountId', 'id'], where: 'monthly_budget_nanos > 0' },
      budget_day_capped: { columns: ['accountId', 'id'], where: 'daily_budget_nanos > 0' },
    },
    checks: ['monthly_budget_nanos >= 0', 'daily_budget_nanos >= 0', 'requests_per_minute > 0'],
    isHot: true,
  }),

  /** A person signs in at an identity provider, which names the person by issuer and subject. */
  person: table('person', {
    columns: {
      id: text,
      accountId: text.references('account'),
      // Shared by all keys of the person. Its lock is the lock of the person.
      budgetId: text.references('budget'),
      issuer: text,
      subject: text,
      email: text,
      name: text,
      // As of api_key: name and email.
      searchUpper: text,
      role: text.of<PersonRole>(),
      status: text.of<PersonStatus>().default('active'),
      createdAtMs: integer,
      lastSeenAtMs: integer,
      // The provider's refresh token, sealed.
      refreshToken: bytes.orNull(),
      // When the provider last confirmed the person, or was last asked.
      checkedAtMs: integer,
      // When it is to be asked again.
      checkDueMs: integer,
    },
    key: ['id'],
    indexes: {
      person_by_subject: { columns: ['issuer', 'subject'], isUnique: true },
      person_by_account: { columns: ['accountId', 'id'] },
      person_by_check: {
        columns: ['checkDueMs', 'id'],
        where: "refresh_token IS NOT NULL AND status = 'active'",
      },
    },
  }),

  /** What a new person of the account gets, and each key of a person. Without a row: the defaults. */
  members: table('members', {
    columns: {
      accountId: text.references('account'),
      keysMax: integer,
      keyDaysMax: integer,
      monthlyBudgetNanos: amount.orNull(),
      dailyBudgetNanos: amount.orNull(),
      requestsPerMinute: integer.orNull(),
      allowedModels: json<readonly string[]>().orNull(),
      logRequests: flag,
    },
    key: ['accountId'],
  }),

  apiKey: table('api_key', {
    columns: {
      id: text,
      accountId: text.references('account'),
      budgetId: text.references('budget'),
      // Null: the key of a service.
      personId: text.orNull().references('person'),
      // Null: not a device. Until then a refresh makes the key usable again.
      deviceUntilMs: integer.orNull(),
      name: text,
      // Upper case by our own runtime: what the databases know of letters depends on version and locale.
      nameUpper: text,
      digest: bytes,
      prefix: text,
      last4: text,
      createdAtMs: integer,
      expiresAtMs: integer.orNull(),
      revokedAtMs: integer.orNull(),
      lastUsedAtMs: integer.orNull(),
      // A JSON array; null is every model.
      allowedModels: json<readonly string[]>().orNull(),
      logRequests: flag.default(false),
      metadata: json<Metadata>().default({}),
      rotatedFrom: text.orNull(),
    },
    key: ['id'],
    indexes: {
      api_key_by_digest: { columns: ['digest'], isUnique: true },
      api_key_by_account: { columns: ['accountId', 'id'] },
      api_key_by_budget: { columns: ['budgetId'] },
      api_key_by_person: { columns: ['personId', 'id'], where: 'person_id IS NOT NULL' },
      api_key_expiring: {
        columns: ['accountId', 'expiresAtMs'],
        where: 'expires_at_ms IS NOT NULL AND revoked_at_ms IS NULL',
      },
      api_key_by_expiry: { columns: ['expiresAtMs', 'id'], where: 'expires_at_ms IS NOT NULL' },
    },
    isHot: true,
  }),

  adminKey: table('admin_key', {
    columns: {
      id: text,
      role: text.of<AdminRole>(),
      // Null for operators.
      accountId: text.orNull().references('account'),
      name: text,
      digest: bytes,
      prefix: text,
      last4: text,
      createdAtMs: integer,
      revokedAtMs: integer.orNull(),
      lastUsedAtMs: integer.orNull(),
      bootstrap: flag,
    },
    key: ['id'],
    indexes: {
      admin_key_by_digest: { columns: ['digest'], isUnique: true },
      admin_key_by_account: { columns: ['accountId', 'id'] },
      admin_key_bootstrap: {
        columns: ['bootstrap'],
        isUnique: true,
        where: 'bootstrap AND revoked_at_ms IS NULL',
      },
    },
  }),

  session: table('session', {
    columns: {
      digest: bytes,
      // Of a key or of a person.
      keyId: text.orNull(),
      personId: text.orNull(),
      expiresAtMs: integer,
    },
    key: ['digest'],
    indexes: {
      session_by_key: { columns: ['keyId', 'expiresAtMs'] },
      session_by_person: { columns: ['personId', 'expiresAtMs'], where: 'person_id IS NOT NULL' },
      session_by_expiry: { columns: ['expiresAtMs'] },
    },
    isExported: false,
  }),

  /** A device that waits for a person to approve it. */
  deviceCode: table('device_code', {
    columns: {
      digest: bytes,
      // Without the hyphen.
      userCode: text,
      client: text,
      status: text.of<DeviceCodeStatus>().default('pending'),
      // Who approved it.
      personId: text.orNull().references('person'),
      polledAtMs: integer.orNull(),
      expiresAtMs: integer,
    },
    key: ['digest'],
    indexes: {
      device_code_by_user_code: { columns: ['userCode'], isUnique: true },
      device_code_by_person: { columns: ['personId'], where: 'person_id IS NOT NULL' },
      device_code_by_expiry: { columns: ['expiresAtMs'] },
    },
    isExported: false,
  }),

  priceVersion: table('price_version', {
    columns: {
      id: text,
      json: text,
    },
    key: ['id'],
    isWide: true,
  }),

  /** A fenced node cannot admit or settle. A node raises its epoch if it does not know the outcome of an admission. */
  node: table('node', {
    columns: {
      id: text,
      name: text,
      epoch: integer.default(1),
      // Of its release. An upgrade that the release cannot use waits for the node.
      schemaVersion: integer.default(1),
      startedAtMs: integer,
      seenAtMs: integer,
      fencedAtMs: integer.orNull(),
    },
    key: ['id'],
    isHot: true,
    location: 'postgres',
    isExported: false,
  }),
}
