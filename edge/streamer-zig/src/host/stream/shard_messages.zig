//! Messages between a shard of the stream and the packet loop, which pass through bounded rings.
//! The packet loop sends commands; a shard sends read events and forwards datagrams that are not
//! its own. `Figures` are the shard's counters (docs/decisions/0022-stream-shards.md).

const base = @import("base");
const core = @import("core");
const Arrival = @import("read_queue.zig").Arrival;
const VersionDisk = @import("version_disk.zig").VersionDisk;
const datagram_size_max = @import("../net/udp_socket.zig").datagram_size_max;

/// From the packet loop to a shard.
pub const Command = union(enum) {
    /// The shard serves this session from now on, or its address has changed. The shard owns the
    /// open disk.
    adopt: struct { session: core.stream.Server.Session, disk: VersionDisk },
    /// The shard drops the session with this id.
    drop: u64,
};

/// From a shard to the packet loop: a step of one READ, for the boot that it belongs to.
pub const ReadEvent = struct {
    /// Without its ranges.
    read: core.stream.Server.ReadRequest,
    arrival: Arrival,
    what: union(enum) {
        came,
        /// A duplicate of a READ in progress, which gets no answer.
        unanswered,
        /// When the first packet of the answer goes out. Sent before that packet, so that the
        /// packet loop hears it before anything that the device sends in response.
        sending: u64,
        answered: core.boot.ReadTimes.ReadSample,
        /// When the store failed.
        store_error: u64,
    },
};

/// From a shard to the packet loop: a datagram that the packet loop handles.
pub const Forwarded = struct {
    from: base.Endpoint,
    at_us: u64,
    size: u16,
    bytes: [datagram_size_max]u8,
};

/// Counters of a shard since the start.
pub const Figures = struct {
    sent_bytes: u64 = 0,
    reads: u64 = 0,
    cold: u64 = 0,
    cold_us: u64 = 0,
    /// In the order of `metrics_page.Unanswered`.
    unanswered: [3]u64 = @splat(0),
    sessions: u64 = 0,
    /// Datagrams forwarded to the packet loop, and those lost because the ring was full.
    forwarded: u64 = 0,
    forwarded_lost: u64 = 0,
    /// Read events lost because the packet loop did not drain the ring in time.
    events_lost: u64 = 0,
    ignored: [base.IgnoreReason.count]u64 = @splat(0),

    const Words = [@sizeOf(Figures) / 8]u64;

    /// Publishes the counters to readers in other threads. Each number is atomic by itself;
    /// together they are no snapshot.
    pub fn publish(figures: *const Figures, to: *Figures) void {
        const from: *const Words = @ptrCast(figures);
        const words: *Words = @ptrCast(to);
        for (from, words) |value, *word| @atomicStore(u64, word, value, .monotonic);
    }

    pub fn read(published: *const Figures) Figures {
        var figures: Figures = undefined;
        const from: *const Words = @ptrCast(published);
        const words: *Words = @ptrCast(&figures);
        for (from, words) |*value, *word| word.* = @atomicLoad(u64, value, .monotonic);
        return figures;
    }
};
