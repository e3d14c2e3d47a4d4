//! The boot profiles of an edge (docs/reference/boot-profile.md), as far as they are decided:
//! which boots are learned from, when a profile is loaded again, and which document a device is
//! handed. `ProfileWorker` does what takes time (files, merging), beside the loop; the two exchange
//! `Job`s and `Event`s through `Io`. Invariant: everything is bounded, and a worker that is behind
//! or missing costs what would be learned, never a boot.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const mutants = @import("../mutants.zig");
const wire = @import("wire");
const assert = std.debug.assert;

const Boot = core.boot.Boot;
const BootProfile = core.profile.BootProfile;
const Trace = core.profile.Trace;
const Uuid = base.Uuid;

/// Boots that are learned from at a time; further ones boot as well, and nothing is learned from
/// them.
pub const recordings_max = 32;
/// Documents in memory; at most 8 MiB.
const documents_max = 128;
/// The memory of this machine may have been used for something else since.
pub const want_again_us = 600 * std.time.us_per_s;
/// Another process may have written a profile for a version that had none.
pub const look_again_us = 5 * std.time.us_per_s;

/// What one boot reads. While the worker has it, the loop does not touch it.
pub const Recording = struct {
    state: enum { free, recording, merging } = .free,
    boot_id: Uuid = .zero,
    version_id: Uuid = .zero,
    class: BootProfile.Class = .any,
    /// Simulated devices read what they are told to: they teach other devices nothing.
    is_simulated: bool = false,
    trace: Trace = .{},
};

pub const Job = union(enum) {
    /// Loads the profiles of a version, or carries those of an earlier one, and warms the memory.
    load: Uuid,
    merge: *Recording,
    /// Checks whether somebody has removed profiles.
    look,
};

pub const Event = union(enum) {
    /// What devices are handed from now on; no bytes: nothing.
    published: struct { version_id: Uuid, key: u64, document: []u8 },
    merged: *Recording,
    looked,
};

/// For the metrics page.
pub const Figures = struct {
    /// Boots that were learned from.
    boots: u64 = 0,
    /// Bytes that devices read ahead of demand in those boots, and how many of them their systems
    /// used.
    ahead_bytes: u64 = 0,
    used_bytes: u64 = 0,
    handed: u64 = 0,
};

const Document = struct { version_id: Uuid, key: u64, bytes: []u8, used: u64 };

const LoadedVersion = struct { version_id: Uuid = .zero, at_us: u64 = 0 };

pub fn Profiles(comptime Io: type) type {
    return struct {
        const Self = @This();

        gpa: std.mem.Allocator,
        io: *Io,
        recordings: []Recording,
        /// Those in the state `recording`.
        recording_count: u16 = 0,
        loaded: []LoadedVersion,
        documents: []?Document,
        /// Grows with each use of a document: the one of longest ago makes room.
        uses: u64 = 0,
        is_looking: bool = false,
        figures: Figures = .{},

        /// Nothing is learned, and nothing is handed out.
        pub fn none(gpa: std.mem.Allocator, io: *Io) Self {
            return .{ .gpa = gpa, .io = io, .recordings = &.{}, .loaded = &.{}, .documents = &.{} };
        }

        pub fn init(
            gpa: std.mem.Allocator,
            io: *Io,
            limits: struct {
                recordings: u16 = recordings_max,
                documents: u16 = documents_max,
            },
        ) error{OutOfMemory}!Self {
            assert(limits.recordings > 0 and limits.documents > 0);
            const recordings = try gpa.alloc(Recording, limits.recordings);
            errdefer gpa.free(recordings);
            @memset(recordings, .{});
            const loaded = try gpa.alloc(LoadedVersion, limits.documents);
            errdefer gpa.free(loaded);
            @memset(loaded, .{});
            const documents = try gpa.alloc(?Document, limits.documents);
            @memset(documents, null);
            return .{
                .gpa = gpa,
                .io = io,
                .recordings = recordings,
                .loaded = loaded,
                .documents = documents,
            };
        }

        /// The worker has ended.
        pub fn deinit(profiles: *Self) void {
            for (profiles.documents) |place|
                if (place) |document| profiles.gpa.free(document.bytes);
            profiles.gpa.free(profiles.documents);
            profiles.gpa.free(profiles.loaded);
            profiles.gpa.free(profiles.recordings);
            profiles.* = undefined;
        }

        /// Prepares the profiles of a version that may be booted soon; may be called as often as
        /// the caller likes.
        pub fn want(profiles: *Self, version_id: Uuid, now_us: u64) void {
            if (profiles.loaded.len == 0) return;
            profiles.takeEvents();
            var oldest = &profiles.loaded[0];
            for (profiles.loaded) |*entry| {
                if (entry.version_id.eql(version_id)) {
                    const pause_us: u64 =
                        if (profiles.has(version_id)) want_again_us else look_again_us;
                    if (now_us -| entry.at_us < pause_us) return;
                    oldest = entry;
                    break;
                }
                if (entry.at_us < oldest.at_us) oldest = entry;
            }
            if (!profiles.io.startProfileJob(.{ .load = version_id })) return;
            assert(oldest.version_id.eql(version_id) or oldest.at_us <= profiles.loaded[0].at_us);
            oldest.* = .{ .version_id = version_id, .at_us = now_us };
        }

        /// Starts to record what a boot reads, when its first session opens. Devices whose writes
        /// outlive their boots are not recorded: the version's other devices do not have those
        /// blocks.
        pub fn begin(
            profiles: *Self,
            boot: *const Boot,
            writes_to: core.boot.Guest.CacheClass,
        ) void {
            if (writes_to.isKept() and !mutants.has(.learn_from_kept_writes)) return;
            if (profiles.find(boot.identity.id) != null) return;
            const recording = for (profiles.recordings) |*place| {
                if (place.state == .free) break place;
            } else return;
            recording.boot_id = boot.identity.id;
            recording.version_id = boot.assignment.version_id;
            recording.class = classOf(boot);
            recording.is_simulated = boot.isSimulated();
            recording.trace.clear();
            recording.state = .recording;
            profiles.recording_count += 1;
            assert(profiles.recording_count <= profiles.recordings.len);
        }

        /// Records a READ that came for the first time. Of one ahead of demand, only the size
        /// counts.
        pub fn onRead(profiles: *Self, read: *const core.stream.Server.ReadRequest) void {
            assert(read.length > 0);
            if (read.repeated) return;
            const recording = profiles.find(read.boot_id) orelse return;
            switch (read.kind) {
                .demand => recording.trace.demand(read.offset, read.length),
                .ahead => recording.trace.ahead_bytes += read.length,
                .profile => {},
            }
        }

        pub fn onUsed(profiles: *Self, used: *const core.stream.Server.UsedUnits) void {
            const recording = profiles.find(used.boot_id) orelse return;
            assert(recording.state == .recording);
            for (0..used.units.count()) |index|
                recording.trace.used(used.units.at(@intCast(index)));
        }

        /// The boot is ready: learns from it, unless the worker has enough to do.
        pub fn finish(profiles: *Self, boot_id: Uuid) void {
            const recording = profiles.find(boot_id) orelse return;
            assert(profiles.recording_count > 0);
            profiles.recording_count -= 1;
            recording.state = .free;
            assert(recording.boot_id.eql(boot_id));
            if (recording.trace.slice().len == 0) return;
            if (profiles.io.startProfileJob(.{ .merge = recording })) recording.state = .merging;
        }

        /// Runs once a second: drops recordings of boots that ended without becoming ready, and
        /// profiles that somebody has removed.
        pub fn tick(profiles: *Self, table: *core.boot.Table) void {
            if (profiles.documents.len == 0) return;
            profiles.takeEvents();
            assert(profiles.recording_count <= profiles.recordings.len);
            if (!profiles.is_looking) profiles.is_looking = profiles.io.startProfileJob(.look);
            if (mutants.has(.recordings_never_freed)) return;
            for (profiles.recordings) |*recording| {
                if (recording.state != .recording) continue;
                const boot = if (table.findById(recording.boot_id)) |ref| table.get(ref) else null;
                if (boot) |known| if (!known.isOver()) continue;
                assert(profiles.recording_count > 0);
                recording.state = .free;
                profiles.recording_count -= 1;
            }
        }

        /// Returns the size in bytes of the document for a boot's device; 0 if there is none.
        pub fn sizeFor(profiles: *Self, boot: *const Boot) u32 {
            profiles.takeEvents();
            const document = profiles.documentFor(boot) orelse return 0;
            assert(document.bytes.len <= wire.stream.profile.document_size_max);
            return @intCast(document.bytes.len);
        }

        /// Returns the document for a boot's device from an offset on, which may lie behind its
        /// end: it may have become shorter since the device heard its size.
        pub fn documentFrom(profiles: *Self, boot: *const Boot, offset: u64) []const u8 {
            profiles.takeEvents();
            const document = profiles.documentFor(boot) orelse return &.{};
            assert(document.bytes.len > 0);
            if (offset == 0) profiles.figures.handed += 1;
            return document.bytes[@intCast(@min(offset, document.bytes.len))..];
        }

        fn has(profiles: *Self, version_id: Uuid) bool {
            assert(profiles.documents.len == profiles.loaded.len);
            for (profiles.documents) |place|
                if (place) |document| if (document.version_id.eql(version_id)) return true;
            return false;
        }

        fn find(profiles: *Self, boot_id: Uuid) ?*Recording {
            assert(profiles.recording_count <= profiles.recordings.len);
            if (profiles.recording_count == 0) return null;
            for (profiles.recordings) |*recording| {
                if (recording.state == .recording and recording.boot_id.eql(boot_id))
                    return recording;
            }
            return null;
        }

        /// Returns the document of the boot's class, or that of all classes.
        fn documentFor(profiles: *Self, boot: *const Boot) ?*Document {
            if (profiles.documents.len == 0) return null;
            const version_id = boot.assignment.version_id;
            if (mutants.has(.profile_of_another_version))
                for (profiles.documents) |*place| if (place.*) |*any| return any;
            const found = profiles.documentOf(version_id, classOf(boot).key) orelse
                profiles.documentOf(version_id, BootProfile.Class.any.key) orelse return null;
            profiles.uses += 1;
            assert(found.bytes.len > 0 and found.used < profiles.uses);
            found.used = profiles.uses;
            return found;
        }

        fn documentOf(profiles: *Self, version_id: Uuid, key: u64) ?*Document {
            for (profiles.documents) |*place| {
                const document = if (place.*) |*known| known else continue;
                assert(document.bytes.len > 0);
                if (document.key == key and document.version_id.eql(version_id)) return document;
            }
            return null;
        }

        /// Takes what the worker has done.
        pub fn takeEvents(profiles: *Self) void {
            while (profiles.io.takeProfileEvent()) |event| switch (event) {
                .published => |of| profiles.publish(of.version_id, of.key, of.document),
                .merged => |recording| {
                    assert(recording.state == .merging);
                    recording.state = .free;
                    profiles.figures.boots += 1;
                    profiles.figures.ahead_bytes += recording.trace.ahead_bytes;
                    profiles.figures.used_bytes += recording.trace.used_bytes;
                },
                .looked => profiles.is_looking = false,
            };
        }

        fn publish(profiles: *Self, version_id: Uuid, key: u64, bytes: []u8) void {
            assert(bytes.len <= wire.stream.profile.document_size_max);
            for (profiles.documents) |*place| {
                const known = place.* orelse continue;
                if (known.key != key or !known.version_id.eql(version_id)) continue;
                profiles.gpa.free(known.bytes);
                place.* = null;
            }
            assert(profiles.documentOf(version_id, key) == null);
            if (bytes.len == 0) return;
            var place = &profiles.documents[0];
            for (profiles.documents) |*other| {
                if (place.* == null) break;
                if (other.* == null or other.*.?.used < place.*.?.used) place = other;
            }
            if (place.*) |given_up| profiles.gpa.free(given_up.bytes);
            place.* = .{
                .version_id = version_id,
                .key = key,
                .bytes = bytes,
                .used = profiles.uses,
            };
        }
    };
}

/// Returns the class of hardware that boots alike: the firmware's architecture and the vendor of
/// its network interface.
fn classOf(boot: *const Boot) BootProfile.Class {
    var buffer: [64]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    if (boot.isSimulated()) {
        writer.writeAll("simulated") catch unreachable;
    } else {
        if (boot.facts.client_arch) |arch|
            writer.print("architecture {d}", .{arch}) catch unreachable
        else
            writer.writeAll("unknown architecture") catch unreachable;
        writer.print(", network interface {x:0>2}:{x:0>2}:{x:0>2}", .{
            boot.identity.mac.bytes[0], boot.identity.mac.bytes[1], boot.identity.mac.bytes[2],
        }) catch unreachable;
    }
    var digest: [32]u8 = undefined;
    base.Sha256.hash(writer.buffered(), &digest, .{});
    // 0 is the class of all.
    return .{
        .key = std.mem.readInt(u64, digest[0..8], .big) | 1,
        .name = .init(writer.buffered()),
    };
}
