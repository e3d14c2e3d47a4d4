import { Prisma } from '@bootfarm/db'

/**
 * Of `device` and its last `boot`, in a statement: the device writes a version, its start is over, and every edge that holds what it has
 * written says that it hears nothing of the device any more.
 */
export const hasLeft = Prisma.sql`(device.last_boot_outcome is not null and (
  select bool_and(layer.is_written is not distinct from false) from edge_version as layer
  where layer.organization_id = device.organization_id and layer.version_id = boot.version_id and layer.is_layer) is true)`
