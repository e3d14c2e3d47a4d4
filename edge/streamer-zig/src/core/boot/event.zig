//! What can happen to a boot, as boot.zig is told of it.

const base = @import("base");
const stream = @import("wire").stream;
const boot_phase = @import("phase.zig");
const Assignment = @import("assignment.zig").Assignment;
const LoaderFile = @import("assignment.zig").LoaderFile;

/// Which software speaks DHCP: the firmware's own boot ROM, or iPXE, native or loaded as boot
/// program.
pub const DhcpClient = enum { rom, ipxe };

pub const StreamOpen = struct {
    /// Not for the first time in this boot.
    resumed: bool,
    /// IP packet size that the first reads' fragments have at least, in bytes.
    mtu: u16,
    cipher: stream.Cipher,
};

pub const DhcpMessage = enum { discover, request };

pub const DhcpRequest = struct {
    message: DhcpMessage,
    client: DhcpClient,
    xid: u32,
    size: u32,
};

/// What happened to this boot. Sizes in bytes.
pub const Event = union(enum) {
    power_command,
    dhcp_request: DhcpRequest,
    dhcp_answer: struct { size: u32 },
    nbp_begin,
    nbp_traffic: boot_phase.Traffic,
    nbp_end,
    loader_begin: LoaderFile,
    loader_traffic: boot_phase.Traffic,
    loader_end: LoaderFile,
    /// A read of the disk by firmware or loader over HTTP.
    stage1_read: struct { size: u64 },
    stage1_traffic: boot_phase.Traffic,
    stream_open: StreamOpen,
    /// A READ request; `attempt` above 0 is a repeated one that misses fragments.
    /// `mtu`: the IP packet size of its fragments, where it is known.
    stream_read: struct { size: u64, attempt: u16, missing_fragments: u32, mtu: ?u16 = null },
    stream_traffic: boot_phase.Traffic,
    /// By the stream, or by HTTP: there also of a machine that opens no stream.
    ready: enum { stream, http },
    /// Taken after the boot is over, too.
    guest: stream.Report,
    /// Ends the boot at once.
    failed: struct { cause: boot_phase.Cause, text: base.UntrustedText = .empty },
    /// The store could not read what the device asked for; the device asks again.
    store_error,
    /// Trouble that the device may overcome by itself; it names the cause if the boot gets no
    /// further.
    suspected: struct { cause: boot_phase.Cause, text: base.UntrustedText = .empty },
    /// The device shows its boot menu, and waits that long for a choice.
    menu_shown: struct { timeout_ms: u32 },
    /// Before it loads anything; null: nothing of this edge, `left_to_local_disk` follows.
    menu_choice: struct { title: base.UntrustedText, assignment: ?Assignment },
    /// The boot menu sent the device to its own disk.
    left_to_local_disk,
};
