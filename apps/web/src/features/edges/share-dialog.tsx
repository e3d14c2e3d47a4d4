'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { formProblem } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'

type EdgeDetail = RouterOutputs['edge']['get']

const weightMax = 100
/** 32 networks with their separators. */
const networksSizeMax = 700

export function ShareDialog({ edge, onClose }: { edge: EdgeDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  // Of the edge as it was when the form was filled.
  const [revision] = useState(edge.revision)
  const [weight, setWeight] = useState(String(edge.weight))
  const [networks, setNetworks] = useState(edge.subnets.join(', '))
  const save = useMutation(
    trpc.edge.setShare.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(trpc.edge.pathFilter())
        void queryClient.invalidateQueries(trpc.site.pathFilter())
        onClose()
      },
    }),
  )
  const isWeight = /^\d{1,3}$/.test(weight.trim()) && Number(weight) <= weightMax
  return (
    <FormDialog
      title={`Load sharing of ${edge.name}`}
      action="Save"
      busy={save.isPending}
      disabled={!isWeight}
      failure={formProblem(save.error)}
      onClose={onClose}
      onSubmit={() =>
        save.mutate({
          edgeId: edge.id,
          revision,
          weight: Number(weight),
          subnets: networks.split(/[\s,]+/).filter(Boolean),
        })
      }
    >
      <TextField
        label="Weight, 0 to 100"
        value={weight}
        onChange={setWeight}
        maxLength={3}
        hint="Devices are distributed by weight. 0: only when no other edge is online."
      />
      <TextField
        label="Preferred networks"
        value={networks}
        onChange={setNetworks}
        placeholder="none, or 10.20.0.0/16, 10.21.0.0/16"
        maxLength={networksSizeMax}
        mono
        hint="Devices in these networks boot from this edge while it is online, regardless of weight."
      />
    </FormDialog>
  )
}
