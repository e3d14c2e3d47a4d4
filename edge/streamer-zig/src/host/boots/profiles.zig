//! The boot profiles of this edge (docs/reference/boot-profile.md). The packet loop records what a
//! boot reads, and hands devices what earlier boots of their version read. A separate thread merges
//! profiles, keeps them on disk, carries them to new versions, and reads ahead into this machine's
//! memory what the next boots will need. The loop never waits for the thread: the lock is held only
//! for copies.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire");
const profile_files = @import("../files/profile_files.zig");
const Warmer = @import("../files/profile_warmer.zig");
const log = @import("../log.zig");
const sys = @import("../sys.zig");
const assert = std.debug.assert;
const Io = std.Io;

const BootProfile = core.profile.BootProfile;
const Trace = core.profile.Trace;
const Uuid = base.Uuid;
const units = wire.stream.profile;

/// Boots that are learned from at a time; further ones boot as well, and nothing is learned from
/// them.
pub const traces_max = 32;
/// Documents in memory; at most 8 MiB.
const documents_max = 128;
const jobs_max = 128;
/// The memory of this machine may have been used for something else since.
const want_again_us = 600 * std.time.us_per_s;
/// Another process may have written a profile for a version that had none.
const look_again_us = 5 * std.time.us_per_s;

/// For the metrics page.
pub const Figures = struct {
    /// Boots that were learned from.
    boots: u64 = 0,
    /// Bytes that devices read ahead of demand in those boots, and how many of them their systems
    /// used.
    ahead_bytes: u64 = 0,
    used_bytes: u64 = 0,
    /// Bytes read into this machine's memory ahead of boots.
    warmed_bytes: u64 = 0,
    handed: u64 = 0,
};

const Recording = struct {
    /// `handed`: the thread owns it.
    state: std.atomic.Value(State) = .init(.free),
    boot_id: Uuid = .zero,
    version_id: Uuid = .zero,
    class: BootProfile.Class = .any,
    is_simulated: bool = false,
    trace: Trace = .{},

    const State = enum(u8) { free, recording, handed };

    fn is(recording: *const Recording, state: State) bool {
        return recording.state.load(.acquire) == state;
    }
};

const Document = struct { version_id: Uuid, key: u64, bytes: []u8, used: u64 };

const WarmRequest = struct { version_id: Uuid, at_us: u64 };

const Job = union(enum) {
    /// Loads or carries the profiles of a version, and warms the memory.
    want: Uuid,
    merge: *Recording,
    /// Checks whether somebody has removed profiles.
    look,
};

pub const BootProfiles = @This();

gpa: std.mem.Allocator,
io: Io,
/// The store's directory, for the thread.
files: store.LinuxFiles,
recordings: []Recording,
recording_count: u16 = 0,
wanted: [documents_max]WarmRequest = @splat(.{ .version_id = .zero, .at_us = 0 }),
/// Protects the fields from here to those of the thread.
mutex: Io.Mutex = .init,
condition: Io.Condition = .init,
jobs: [jobs_max]Job = undefined,
jobs_first: u16 = 0,
jobs_count: u16 = 0,
documents: [documents_max]?Document = @splat(null),
uses: u64 = 0,
figures: Figures = .{},
inventory: core.profile.Inventory = .{},
/// Grows with each change of `inventory`.
changes: u64 = 0,
is_look_due: std.atomic.Value(bool) = .init(false),
/// Owned by the thread.
seen: ?profile_files.Generation = null,
scratch: *BootProfile.Scratch,
profile: *BootProfile,
buffer: *[BootProfile.file_size_max]u8,
warmer: Warmer,

pub fn create(gpa: std.mem.Allocator, io: Io, dir_fd: i32) error{OutOfMemory}!*BootProfiles {
    const profiles = try gpa.create(BootProfiles);
    const recordings = try gpa.alloc(Recording, traces_max);
    for (recordings) |*recording| recording.state = .init(.free);
    profiles.* = .{
        .gpa = gpa,
        .io = io,
        .files = .fromFd(dir_fd),
        .recordings = recordings,
        .scratch = try gpa.create(BootProfile.Scratch),
        .profile = try gpa.create(BootProfile),
        .buffer = try gpa.create([BootProfile.file_size_max]u8),
        .warmer = .{},
    };
    return profiles;
}

/// Runs the thread until the process ends.
pub fn start(profiles: *BootProfiles) std.Thread.SpawnError!void {
    const thread = try std.Thread.spawn(.{ .stack_size = 1 << 20 }, work, .{profiles});
    thread.detach();
}

/// Prepares the profiles of a version that may be booted soon. The packet loop may call it as
/// often as it likes.
pub fn want(profiles: *BootProfiles, version_id: Uuid, now_us: u64) void {
    var oldest = &profiles.wanted[0];
    for (&profiles.wanted) |*entry| {
        if (entry.version_id.eql(version_id)) {
            const pause_us: u64 = if (profiles.has(version_id)) want_again_us else look_again_us;
            if (now_us -| entry.at_us < pause_us) return;
            oldest = entry;
            break;
        }
        if (entry.at_us < oldest.at_us) oldest = entry;
    }
    if (!profiles.give(.{ .want = version_id })) return;
    oldest.* = .{ .version_id = version_id, .at_us = now_us };
}

/// Starts to record what a boot reads, when its first session opens. Devices whose writes
/// outlive their boots are not recorded: the version's other devices do not have those blocks.
pub fn begin(
    profiles: *BootProfiles,
    boot: *const core.boot.Boot,
    writes_to: core.boot.Guest.CacheClass,
) void {
    if (writes_to.isKept() or profiles.find(boot.identity.id) != null) return;
    const recording = for (profiles.recordings) |*place| {
        if (place.is(.free)) break place;
    } else return;
    recording.boot_id = boot.identity.id;
    recording.version_id = boot.assignment.version_id;
    recording.class = classOf(boot);
    recording.is_simulated = boot.isSimulated();
    recording.trace.clear();
    recording.state.store(.recording, .release);
    profiles.recording_count += 1;
}

/// Records a READ that came for the first time. Of one ahead of demand, only the size counts.
pub fn onRead(profiles: *BootProfiles, read: *const core.stream.Server.ReadRequest) void {
    if (read.repeated) return;
    const recording = profiles.find(read.boot_id) orelse return;
    switch (read.kind) {
        .demand => recording.trace.demand(read.offset, read.length),
        .ahead => recording.trace.ahead_bytes += read.length,
        .profile => {},
    }
}

pub fn onUsed(profiles: *BootProfiles, used: *const core.stream.Server.UsedUnits) void {
    const recording = profiles.find(used.boot_id) orelse return;
    for (0..used.units.count()) |index| recording.trace.used(used.units.at(@intCast(index)));
}

/// The boot is ready: learns from it.
pub fn finish(profiles: *BootProfiles, boot_id: Uuid) void {
    const recording = profiles.find(boot_id) orelse return;
    profiles.recording_count -= 1;
    recording.state.store(.handed, .release);
    if (!profiles.give(.{ .merge = recording })) recording.state.store(.free, .release);
}

/// Runs once a second: drops recordings of boots that ended without becoming ready, and
/// profiles that somebody has removed.
pub fn tick(profiles: *BootProfiles, table: *core.boot.Table) void {
    if (!profiles.is_look_due.swap(true, .acq_rel) and !profiles.give(.look))
        profiles.is_look_due.store(false, .release);
    for (profiles.recordings) |*recording| {
        if (!recording.is(.recording)) continue;
        const boot = if (table.findById(recording.boot_id)) |ref| table.get(ref) else null;
        if (boot) |known| if (!known.isOver()) continue;
        recording.state.store(.free, .release);
        profiles.recording_count -= 1;
    }
}

/// Returns the size in bytes of the document for a boot's device; 0 if there is none.
pub fn sizeFor(profiles: *BootProfiles, boot: *const core.boot.Boot) u32 {
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    const document = profiles.documentFor(boot) orelse return 0;
    return @intCast(document.bytes.len);
}

/// Copies a part of the document; zeros if it has become shorter, which the device detects.
pub fn copyFor(profiles: *BootProfiles, boot: *const core.boot.Boot, into: []u8, offset: u64) void {
    @memset(into, 0);
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    const document = profiles.documentFor(boot) orelse return;
    if (offset == 0) profiles.figures.handed += 1;
    if (offset >= document.bytes.len) return;
    const size = @min(into.len, document.bytes.len - offset);
    @memcpy(into[0..size], document.bytes[@intCast(offset)..][0..size]);
}

fn has(profiles: *BootProfiles, version_id: Uuid) bool {
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    for (profiles.documents) |place| {
        if (place) |document| if (document.version_id.eql(version_id)) return true;
    }
    return false;
}

/// Returns the inventory to a caller that knows the one of `changes`; null if it has not
/// changed.
pub fn inventoryAfter(profiles: *BootProfiles, changes: u64, into: *core.profile.Inventory) ?u64 {
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    if (profiles.changes == changes) return null;
    into.* = profiles.inventory;
    return profiles.changes;
}

pub fn getFigures(profiles: *BootProfiles) Figures {
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    return profiles.figures;
}

fn find(profiles: *BootProfiles, boot_id: Uuid) ?*Recording {
    if (profiles.recording_count == 0) return null;
    for (profiles.recordings) |*recording| {
        if (recording.is(.recording) and recording.boot_id.eql(boot_id)) return recording;
    }
    return null;
}

/// Returns the document of the boot's class, or that of all classes. The lock is held.
fn documentFor(profiles: *BootProfiles, boot: *const core.boot.Boot) ?*Document {
    const version_id = boot.assignment.version_id;
    const found = profiles.documentOf(version_id, classOf(boot).key) orelse
        profiles.documentOf(version_id, BootProfile.Class.any.key) orelse return null;
    profiles.uses += 1;
    found.used = profiles.uses;
    return found;
}

fn documentOf(profiles: *BootProfiles, version_id: Uuid, key: u64) ?*Document {
    for (&profiles.documents) |*place| {
        const document = if (place.*) |*known| known else continue;
        if (document.key == key and document.version_id.eql(version_id)) return document;
    }
    return null;
}

/// Returns false if the thread has enough to do.
fn give(profiles: *BootProfiles, job: Job) bool {
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    if (profiles.jobs_count == jobs_max) return false;
    profiles.jobs[(profiles.jobs_first + profiles.jobs_count) % jobs_max] = job;
    profiles.jobs_count += 1;
    profiles.condition.signal(profiles.io);
    return true;
}

fn work(profiles: *BootProfiles) void {
    Warmer.lowerPriority();
    while (true) profiles.turn(profiles.warmer.isIdle());
}

/// Runs one job of the thread.
fn turn(profiles: *BootProfiles, waits: bool) void {
    const job = profiles.takeJob(waits) orelse {
        if (profiles.warmer.isIdle()) return;
        const bytes = profiles.warmer.step(profiles.profile, profiles.buffer);
        profiles.mutex.lockUncancelable(profiles.io);
        defer profiles.mutex.unlock(profiles.io);
        profiles.figures.warmed_bytes += bytes;
        return;
    };
    switch (job) {
        .want => |version_id| profiles.load(version_id),
        .merge => |recording| {
            profiles.learn(recording);
            recording.state.store(.free, .release);
        },
        .look => {
            profiles.is_look_due.store(false, .release);
            profiles.look();
        },
    }
}

/// Runs all jobs in the calling thread, if none was started.
pub fn doAll(profiles: *BootProfiles) void {
    while (profiles.jobs_count > 0 or !profiles.warmer.isIdle()) profiles.turn(false);
}

/// For profiles without a thread.
pub fn destroy(profiles: *BootProfiles) void {
    const gpa = profiles.gpa;
    for (&profiles.documents) |*place| if (place.*) |*document| gpa.free(document.bytes);
    gpa.free(profiles.recordings);
    gpa.destroy(profiles.scratch);
    gpa.destroy(profiles.profile);
    gpa.destroy(profiles.buffer);
    gpa.destroy(profiles);
}

fn takeJob(profiles: *BootProfiles, waits: bool) ?Job {
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    while (profiles.jobs_count == 0) {
        if (!waits) return null;
        profiles.condition.waitUncancelable(profiles.io, &profiles.mutex);
    }
    defer {
        profiles.jobs_first = (profiles.jobs_first + 1) % jobs_max;
        profiles.jobs_count -= 1;
    }
    return profiles.jobs[profiles.jobs_first];
}

/// Runs in the thread: loads the profiles of a version, which devices are handed from then on.
fn load(profiles: *BootProfiles, version_id: Uuid) void {
    const files = profiles.files.files();
    if (profile_files.count(files, version_id) == 0) {
        var from = Warmer.openStore(profiles.gpa, files) orelse return;
        defer from.close(profiles.gpa);
        if (!profile_files.carry(&from, version_id, profiles.profile, profiles.buffer)) return;
        log.info("version {f} starts with the boot profile of an earlier version", .{version_id});
    }
    var iterator: profile_files.Iterator = .init(files, version_id);
    while (iterator.next()) |found| {
        if (!found.version.eql(version_id)) break;
        const class =
            profile_files.read(files, found, profiles.profile, profiles.buffer) orelse continue;
        profiles.publish(&.{ .version = version_id, .class = class });
    }
    profiles.warmer.begin(profiles.gpa, files, version_id);
}

/// Runs in the thread: merges one more boot.
fn learn(profiles: *BootProfiles, recording: *Recording) void {
    const trace = &recording.trace;
    if (trace.slice().len == 0) return;
    const version_id = recording.version_id;
    profiles.mergeInto(.{ .version = version_id, .class = recording.class }, trace);
    // Simulated devices read what they are told to.
    if (!recording.is_simulated)
        profiles.mergeInto(.{ .version = version_id, .class = .any }, trace);
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    profiles.figures.boots += 1;
    profiles.figures.ahead_bytes += trace.ahead_bytes;
    profiles.figures.used_bytes += trace.used_bytes;
}

/// Runs in the thread: at its start, and after somebody has removed profiles, reads everything
/// from disk again.
fn look(profiles: *BootProfiles) void {
    const files = profiles.files.files();
    const generation = profile_files.generationOf(files);
    if (profiles.seen) |seen| if (std.mem.eql(u8, &seen, &generation)) return;
    profiles.seen = generation;
    var there: core.profile.Inventory = .{};
    var iterator: profile_files.Iterator = .init(files, null);
    while (iterator.next()) |found| {
        const class = profile_files.read(files, found, profiles.profile, profiles.buffer) orelse
            continue;
        const named: BootProfile.Named = .{ .version = found.version, .class = class };
        if (!there.put(&.of(&named, profiles.profile))) break;
        if (profiles.isPublished(found)) profiles.publish(&named);
    }
    profiles.keepOnly(&there);
}

fn isPublished(profiles: *BootProfiles, found: profile_files.ProfileName) bool {
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    return profiles.documentOf(found.version, found.key) != null;
}

fn keepOnly(profiles: *BootProfiles, there: *core.profile.Inventory) void {
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    for (&profiles.documents) |*place| {
        const document = if (place.*) |*known| known else continue;
        if (there.find(document.version_id, document.key) != null) continue;
        profiles.gpa.free(document.bytes);
        place.* = null;
    }
    profiles.inventory = there.*;
    profiles.changes += 1;
}

fn mergeInto(profiles: *BootProfiles, named: BootProfile.Named, trace: *const Trace) void {
    const files = profiles.files.files();
    const generation = profile_files.generationOf(files);
    const found: profile_files.ProfileName = .{ .version = named.version, .key = named.class.key };
    if (profile_files.read(files, found, profiles.profile, profiles.buffer) == null) {
        if (profile_files.count(files, named.version) > profile_files.classes_max) return;
        if (!profiles.hasRoom()) return log.info(
            "There are {d} boot profiles: none is started for version {f}; remove some with vdisk profile clear.",
            .{ profile_files.count_max, named.version },
        );
        profiles.profile.* = .{};
    }
    profiles.profile.merge(trace.slice(), sys.unixMs(), profiles.scratch);
    // Handed out first: a reader that sees the file counts on it.
    profiles.publish(&named);
    profile_files.write(files, &named, profiles.profile, profiles.buffer) catch |err|
        log.info("The boot profile of version {f} cannot be kept: its file {s}.", .{
            named.version, store.files.sentence(err),
        });
    if (std.mem.eql(u8, &generation, &profile_files.generationOf(files))) return;
    // It contains what somebody has removed in the meantime; `look` drops what is in memory.
    profile_files.forget(files, found, profiles.profile, profiles.buffer) catch {};
}

fn hasRoom(profiles: *BootProfiles) bool {
    const files = profiles.files.files();
    if (profile_files.makeRoom(files, null)) return true;
    var from = Warmer.openStore(profiles.gpa, files) orelse return false;
    defer from.close(profiles.gpa);
    // The profile that was removed to free a slot no longer exists.
    profiles.seen = null;
    return profile_files.makeRoom(files, &from);
}

/// Hands devices the contents of `profile` from now on.
fn publish(profiles: *BootProfiles, named: *const BootProfile.Named) void {
    var out: [units.document_size_max]u8 = undefined;
    const bytes = profiles.gpa.dupe(u8, profiles.profile.document(&out)) catch return;
    const summary: core.profile.Inventory.Summary = .of(named, profiles.profile);
    profiles.mutex.lockUncancelable(profiles.io);
    defer profiles.mutex.unlock(profiles.io);
    if (profiles.inventory.put(&summary)) profiles.changes += 1;
    if (profiles.documentOf(named.version, named.class.key)) |document| {
        profiles.gpa.free(document.bytes);
        document.bytes = bytes;
        return;
    }
    var place = &profiles.documents[0];
    for (&profiles.documents) |*other| {
        if (place.* == null) break;
        if (other.* == null or other.*.?.used < place.*.?.used) place = other;
    }
    if (place.*) |*given_up| profiles.gpa.free(given_up.bytes);
    place.* = .{
        .version_id = named.version,
        .key = named.class.key,
        .bytes = bytes,
        .used = profiles.uses,
    };
}

/// Returns the class of hardware that boots alike: the firmware's architecture and the vendor of
/// its network interface.
pub fn classOf(boot: *const core.boot.Boot) BootProfile.Class {
    var buffer: [64]u8 = undefined;
    var writer: Io.Writer = .fixed(&buffer);
    if (boot.isSimulated()) {
        writer.writeAll("simulated") catch unreachable;
    } else {
        if (boot.facts.client_arch) |arch| writer.print("architecture {d}", .{arch}) catch
            unreachable else writer.writeAll("unknown architecture") catch unreachable;
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
