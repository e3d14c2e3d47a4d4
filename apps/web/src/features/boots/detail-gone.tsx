import { Icon } from '../../components/icon'

/** What is no longer there of a boot whose detail is past its retention. */
export function DetailGone({ keptDays }: { keptDays: number }) {
  return (
    <section aria-label="Boot details expired" className="flex gap-3 rounded-lg bg-hover px-4 py-3 text-ink-soft">
      <span className="pt-0.5">
        <Icon name="alert" />
      </span>
      <div className="min-w-0 text-sm">
        <p className="font-medium">The details of this boot have expired.</p>
        <p className="mt-0.5">
          Boot details are kept for {keptDays} days. The outcome and the times of the phases remain. Phase details, OS
          boot steps, DHCP offers, packets and device details are deleted.
        </p>
      </div>
    </section>
  )
}
