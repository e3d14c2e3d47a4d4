//! The events of one boot: the input of boot.zig. Sizes are bytes.

const base = @import("base");
const stream = @import("wire").stream;
const boot_phase = @import("phase.zig");
const Assignment = @import("assignment.zig").Assignment;
const LoaderFile = @import("assignment.zig").LoaderFile;

/// The software that speaks DHCP: the firmware's own boot ROM, or iPXE, native or loaded as boot
/// program.
pub const DhcpClient = enum { rom, ipxe };

pub const StreamOpen = struct {
    /// Not the first session of this boot.
    resumed: bool,
    /// Lower bound of the IP packet size of the first reads' fragments, in bytes.
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

pub const Suspected = struct {
    cause: boot_phase.Cause,
    text: base.UntrustedText = .empty,
    /// An address that is not known as the device's has told it.
    is_hearsay: bool = false,
};

/// One event of a boot.
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
    /// A disk read by firmware or loader over HTTP.
    stage1_read: struct { size: u64 },
    stage1_traffic: boot_phase.Traffic,
    stream_open: StreamOpen,
    /// A READ request. `attempt` above 0 is a retransmission that misses fragments. `mtu` is the IP
    /// packet size of its fragments, where known.
    stream_read: struct { size: u64, attempt: u16, missing_fragments: u32, mtu: ?u16 = null },
    stream_traffic: boot_phase.Traffic,
    /// Over the stream, or over HTTP: the latter also from a machine that opens no stream.
    ready: enum { stream, http },
    /// Also accepted after the boot is over.
    guest: stream.Report,
    /// Ends the boot at once.
    failed: struct { cause: boot_phase.Cause, text: base.UntrustedText = .empty },
    /// The store could not read what the device requested; the device will retransmit.
    store_error,
    /// Trouble that the device may overcome by itself; it becomes the cause if the boot makes no
    /// further progress.
    suspected: Suspected,
    /// The device shows its boot menu and waits this long for a choice.
    menu_shown: struct { timeout_ms: u32 },
    /// Precedes every load. Null: nothing of this edge was chosen; `left_to_local_disk` follows.
    menu_choice: struct { title: base.UntrustedText, assignment: ?Assignment },
    /// The boot menu sent the device to its local disk.
    left_to_local_disk,

    /// Only the boot's device can have caused it: it has the keys of the session.
    pub fn isOfSession(event: *const Event) bool {
        return switch (event.*) {
            .stream_read, .guest => true,
            .ready => |by| by == .stream,
            else => false,
        };
    }

    /// Comes before a session, from anybody who knows the device's MAC address or its handle.
    pub fn isHint(event: *const Event) bool {
        return switch (event.*) {
            .power_command, .dhcp_request, .dhcp_answer => true,
            .nbp_begin, .loader_begin, .stage1_read => true,
            .menu_shown, .menu_choice, .left_to_local_disk => true,
            else => false,
        };
    }
};
