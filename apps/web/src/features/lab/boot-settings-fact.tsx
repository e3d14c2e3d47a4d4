import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ConfirmButton } from '../../components/dialog'
import { useToast } from '../../components/toast'
import { readableError, useTRPC } from '../../lib/trpc'

interface BootSettingsProps {
  collection: { id: string; name: string; revision: number; bootSettings: string[] }
  mayChange: boolean
}

/** The settings that an experiment recommended and somebody applied, and how to take them back. */
export function BootSettings({ collection, mayChange }: BootSettingsProps) {
  const { id: collectionId, name, revision, bootSettings } = collection
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const update = useMutation(
    trpc.collection.update.mutationOptions({
      onSettled: () => queryClient.invalidateQueries(trpc.collection.pathFilter()),
      onError: (error) =>
        showToast({ title: 'Could not remove the settings.', text: readableError(error), tone: 'failed' }),
    }),
  )
  if (bootSettings.length === 0) return <>none</>
  return (
    <span className="flex flex-col items-start gap-2">
      <span className="wrap-anywhere font-mono text-xs">{bootSettings.join(' ')}</span>
      {mayChange && (
        <ConfirmButton
          label="Remove settings"
          busy={update.isPending}
          title={`Remove the boot settings of ${name}?`}
          action="Remove settings"
          onConfirm={() => update.mutate({ collectionId, revision, bootSettings: [] })}
        >
          <p>Its devices boot without them from their next boot on.</p>
        </ConfirmButton>
      )}
    </span>
  )
}
