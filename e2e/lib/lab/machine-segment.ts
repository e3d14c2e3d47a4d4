import { NetworkSegment } from '../../../scripts/lib/machines/segment.mjs'
import { RunningProcess } from './running-process.ts'

/** A network segment for virtual machines with what runs in it. */
export class MachineSegment extends NetworkSegment {
  /** `more`: what else dnsmasq does. */
  startDhcpServer(more: string[] = []): RunningProcess {
    return started(this.dhcpServer(more))
  }

  startOnEdge(program: string, args: string[], index = 0): RunningProcess {
    return started(this.onEdge(program, args, index))
  }

  /** A program that uses the machines' ports, such as an emulator. */
  startOnSwitch(program: string, args: string[]): RunningProcess {
    return started(this.onSwitch(program, args))
  }

  /** A machine, with a serial console that can be written to. */
  startMachine(program: string, args: string[]): RunningProcess {
    const { command, args: all } = this.onSwitch(program, args)
    return new RunningProcess(command, all, {}, 'pipe')
  }

  /** Records the begin of every packet at the edge's port of the switch, or another one. */
  startCapture(file: string, port = 'to-edge'): RunningProcess {
    return this.startOnSwitch('tcpdump', ['-i', port, '-U', '--immediate-mode', '-s', '192', '-w', file])
  }
}

function started({ command, args }: { command: string; args: string[] }): RunningProcess {
  return new RunningProcess(command, args)
}
