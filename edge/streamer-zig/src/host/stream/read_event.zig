//! What lanes and the packet loop tell each other (docs/decisions/0022-stream-lanes.md).

const base = @import("base");
const core = @import("core");
const Arrival = @import("read_queue.zig").Arrival;
const VersionDisk = @import("version_disk.zig").VersionDisk;
const datagram_size_max = @import("../net/udp_socket.zig").datagram_size_max;

/// To a lane.
pub const Mail = union(enum) {
    /// A session that the lane serves from now on, or that has moved, and the disk that it reads: the lane's own, open.
    adopt: struct { session: core.stream.Server.Session, disk: VersionDisk },
    /// By its id.
    drop: u64,
};

/// From a lane: what became of a READ, for its boot.
pub const Note = struct {
    /// Its ranges are left out.
    read: core.stream.Server.ReadRequest,
    arrival: Arrival,
    what: union(enum) {
        came,
        /// It gets no answer of its own.
        unanswered,
        /// Since when its first packets go out; told before they do, so that nothing that the device says to them comes earlier.
        sending: u64,
        answered: core.boot.ReadTimes.Measured,
        /// When.
        store_error: u64,
    },
};

/// From a lane: a datagram that is the packet loop's.
pub const Passed = struct {
    from: base.Endpoint,
    at_us: u64,
    size: u16,
    bytes: [datagram_size_max]u8,
};

/// What a lane has counted since the start.
pub const Figures = struct {
    sent_bytes: u64 = 0,
    reads: u64 = 0,
    cold: u64 = 0,
    /// In the order of `metrics_page.Unanswered`.
    unanswered: [3]u64 = @splat(0),
    sessions: u64 = 0,
    /// Datagrams that it has passed to the packet loop, and those for which there was no room.
    passed: u64 = 0,
    passed_lost: u64 = 0,
    /// READs and answers that no boot was told of: the packet loop did not listen for too long.
    notes_lost: u64 = 0,
    ignored: [base.IgnoreReason.count]u64 = @splat(0),

    const Words = [@sizeOf(Figures) / 8]u64;

    /// For readers in other threads, each number by itself.
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
