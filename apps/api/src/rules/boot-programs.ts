import { bootProgram, bootProgramSetName } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { uuid } from './scalars.ts'

const bootProgramView = bootProgram.omit({ set: true })
type BootProgram = z.infer<typeof bootProgram>

/** Programs that edges publish together under one name. */
const bootProgramSetView = z.object({
  name: bootProgramSetName,
  programs: z.array(bootProgramView).describe('The report of the first edge that has them.'),
  hasGrub: z.boolean().describe("Debian's signed GRUB asks the DHCP server alone for its files: it ignores proxyDHCP."),
  missingAt: z
    .array(z.object({ edgeId: uuid, edgeName: z.string() }))
    .describe('Edges of the site that do not have the set: a device that is given it fails there.'),
})
export type BootProgramSetView = z.infer<typeof bootProgramSetView>

export const bootProgramSetsInput = z.object({ siteId: uuid })
export const bootProgramSetsView = z.object({ sets: z.array(bootProgramSetView) }).meta({ id: 'BootProgramSets' })

const chosenSet = bootProgramSetName.nullable()
export const chosenSetResult = z.object({ bootProgramSet: z.string().nullable() }).meta({ id: 'ChosenBootProgramSet' })
export const setOfSiteInput = z.object({ siteId: uuid, bootProgramSet: chosenSet })
export const setOfCollectionInput = z.object({ collectionId: uuid, bootProgramSet: chosenSet })
export const setOfDeviceInput = z.object({ deviceId: uuid, bootProgramSet: chosenSet })

interface ReportingEdge {
  id: string
  name: string
  programs: BootProgram[]
}

export function bootProgramSetsOf(edges: ReportingEdge[]): BootProgramSetView[] {
  const names = new Set(edges.flatMap(({ programs }) => programs.map(({ set }) => set)))
  return [...names].sort().map((name) => {
    const withSet = edges.filter(({ programs }) => programs.some(({ set }) => set === name))
    const programs = (withSet[0]?.programs ?? []).filter(({ set }) => set === name)
    return {
      name,
      programs: programs.map(({ set: _set, ...program }) => program),
      hasGrub: programs.some(({ kind }) => /\bgrub/i.test(kind)),
      missingAt: edges
        .filter((edge) => !withSet.includes(edge))
        .map(({ id, name: edgeName }) => ({ edgeId: id, edgeName })),
    }
  })
}
