import { Segment as SharedSegment } from '../../../scripts/lib/lab/segment.mjs'
import { RunningProcess } from './running-process.ts'

/** A network segment and the programs of a test that run on it. */
export class Segment extends SharedSegment {
  /** @param more further options of dnsmasq */
  startDhcpServer(more: string[] = []): RunningProcess {
    return started(this.dhcpServer(more))
  }

  startOnEdge(program: string, args: string[], index = 0): RunningProcess {
    return started(this.onEdge(program, args, index))
  }

  /** Starts a program that uses the machines' ports, such as an emulator, or simulated devices. */
  startOnSwitch(program: string, args: string[]): RunningProcess {
    return started(this.onSwitch(program, args))
  }

  /** Starts a program at another machine of the segment. */
  startElsewhere(program: string, args: string[]): RunningProcess {
    return started(this.onDhcp(program, args))
  }

  /** Starts a machine, whose serial console can be written to. */
  startMachine(program: string, args: string[]): RunningProcess {
    const { command, args: all } = this.onSwitch(program, args)
    return new RunningProcess(command, all, {}, 'pipe')
  }

  /** Records the beginning of every packet at the first edge's port of the switch, or at another port. */
  startCapture(file: string, port?: string): RunningProcess {
    return started(this.capture(file, port))
  }
}

function started({ command, args }: { command: string; args: string[] }): RunningProcess {
  return new RunningProcess(command, args)
}

/**
 * Why tests with namespaces cannot run here; undefined where they can. `others`: Debian packages that they need too.
 */
export function namespacesMissing(others: string[] = []): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  const missing = (process.env.BOOTFARM_MISSING_PACKAGES ?? '').split(' ')
  const wanted = ['iproute2', 'nftables', ...others].filter((name) => missing.includes(name))
  return wanted.length > 0 ? `not installed: ${wanted.join(', ')}` : undefined
}
