import { listen, type NotificationListener } from '@bootfarm/db'
import type { DbOrTransaction } from './service-context.ts'

/**
 * Notifications that PostgreSQL carries between API processes: only that something changed, never the change itself.
 */
type Topic = NotifiedTopic | { state: { siteId: string } }
/** Triggers notify of `state` (the migration `wake_edges`), services of the others. */
type NotifiedTopic = { boots: { organizationId: string } } | { discovered: { organizationId: string } }

/** What an edge's reports change, beside desired states. */
export type ChangedTopic = 'boots' | 'discovered'

const channel = 'bootfarm'

export type Notifications = NotificationListener

export function openNotifications(databaseUrl: string): Promise<Notifications> {
  return listen(databaseUrl, channel)
}

export function topicText(topic: Topic): string {
  if ('boots' in topic) return `boots:${topic.boots.organizationId}`
  if ('discovered' in topic) return `discovered:${topic.discovered.organizationId}`
  return `state:${topic.state.siteId}`
}

/** After the commit of what changed: soon, and once for all that changes until then. */
export function announce(notifications: Notifications, organizationId: string, changed: Iterable<ChangedTopic>): void {
  const topicOf = { boots: { boots: { organizationId } }, discovered: { discovered: { organizationId } } }
  notifications.announce([...changed].map((topic) => topicText(topicOf[topic])))
}

/** Inside a transaction it is sent when that commits, and not at all when it does not. */
export async function notify(db: DbOrTransaction, topic: NotifiedTopic): Promise<void> {
  await db.$executeRaw`select pg_notify(${channel}, ${topicText(topic)})`
}
