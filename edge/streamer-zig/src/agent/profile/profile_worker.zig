//! What an edge's boot profiles need beside its loop (docs/reference/boot-profile.md): loads
//! profiles from the disk, merges boots into them, and carries them to new versions. Producer of
//! the `Event`s of `profiles.zig`, consumer of its `Job`s. Invariant: an event is sent before the
//! file that shows it is written, so whoever sees the file may count on the next boot.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const profile_files = @import("profile_files.zig");
const profiles = @import("profiles.zig");
const store = @import("store");
const units = @import("wire").stream.profile;
const assert = std.debug.assert;

const BootProfile = core.profile.BootProfile;
const Event = profiles.Event;
const ProfileName = profile_files.ProfileName;
const Recording = profiles.Recording;
const Uuid = base.Uuid;

/// A job sends at most two for each profile that there may be, and one more.
pub const events_of_job_max = 2 * profile_files.count_max + 1;

/// `World` has `files() Files`, `unixMs() u64`, `log(format, arguments)`, `send(Event)`,
/// `openStore() ?Store` with `closeStore(*Store)`, `warm(Uuid)` for a version
/// whose profiles are loaded, `onLearned(Uuid)` for one that has learned, and `onInventory(*const
/// Inventory)`, which hears of each change.
pub fn ProfileWorker(comptime World: type) type {
    return struct {
        const Self = @This();

        world: *World,
        /// Documents that are sent belong to the receiver, who frees them with it.
        gpa: std.mem.Allocator,
        inventory: core.profile.Inventory = .{},
        /// When the directory was last read as a whole.
        seen: ?profile_files.Generation = null,
        scratch: BootProfile.Scratch = undefined,
        profile: BootProfile = .{},
        buffer: [BootProfile.file_size_max]u8 = undefined,

        pub fn run(worker: *Self, job: profiles.Job) void {
            switch (job) {
                .load => |version_id| worker.load(version_id),
                .merge => |recording| {
                    worker.merge(recording);
                    worker.world.send(.{ .merged = recording });
                },
                .look => {
                    worker.look();
                    worker.world.send(.looked);
                },
            }
        }

        /// Loads the profiles of a version, which devices are handed from then on.
        fn load(worker: *Self, version_id: Uuid) void {
            assert(worker.inventory.count <= profile_files.count_max);
            const files = worker.world.files();
            if (profile_files.count(files, version_id) == 0) {
                var from = worker.world.openStore() orelse return;
                defer worker.world.closeStore(&from);
                if (!profile_files.carry(&from, version_id, &worker.profile, &worker.buffer))
                    return;
                worker.world.log(
                    "version {f} starts with the boot profile of an earlier version",
                    .{version_id},
                );
            }
            var iterator: profile_files.Iterator = .init(files, version_id);
            while (iterator.next()) |found| {
                if (!found.version.eql(version_id)) break;
                const class = worker.read(found) orelse continue;
                worker.publish(&.{ .version = version_id, .class = class });
            }
            worker.world.warm(version_id);
        }

        fn merge(worker: *Self, recording: *const Recording) void {
            const units_read = recording.trace.slice();
            const version_id = recording.version_id;
            worker.mergeInto(.{ .version = version_id, .class = recording.class }, units_read);
            if (!recording.is_simulated)
                worker.mergeInto(.{ .version = version_id, .class = .any }, units_read);
            worker.world.onLearned(version_id);
        }

        fn mergeInto(worker: *Self, named: BootProfile.Named, read_units: []const units.Unit) void {
            assert(read_units.len > 0 and read_units.len <= units.units_max);
            const files = worker.world.files();
            const generation = profile_files.generationOf(files);
            const found: ProfileName = .{ .version = named.version, .key = named.class.key };
            if (worker.read(found) == null) {
                if (profile_files.count(files, named.version) > profile_files.classes_max) return;
                if (!worker.makeRoom()) return worker.world.log(
                    "There are {d} boot profiles: none is started for version {f}; remove some with vdisk profile clear.",
                    .{ profile_files.count_max, named.version },
                );
                worker.profile = .{};
            }
            worker.profile.merge(read_units, worker.world.unixMs(), &worker.scratch);
            worker.publish(&named);
            profile_files.write(files, &named, &worker.profile, &worker.buffer) catch |err|
                worker.world.log("The boot profile of version {f} cannot be kept: its file {s}.", .{
                    named.version, store.files.sentence(err),
                });
            if (std.mem.eql(u8, &generation, &profile_files.generationOf(files))) return;
            // It contains what somebody has removed in the meantime; `look` drops what is in
            // memory.
            profile_files.forget(files, found, &worker.profile, &worker.buffer) catch {};
        }

        fn makeRoom(worker: *Self) bool {
            const files = worker.world.files();
            if (profile_files.makeRoom(files, null)) return true;
            var from = worker.world.openStore() orelse return false;
            defer worker.world.closeStore(&from);
            // The profile that was removed to free a slot no longer exists.
            worker.seen = null;
            return profile_files.makeRoom(files, &from);
        }

        /// At the start, and after somebody has removed profiles, reads everything from disk again:
        /// what is gone is handed to nobody any more, and what has changed is handed as it is now.
        fn look(worker: *Self) void {
            const files = worker.world.files();
            const generation = profile_files.generationOf(files);
            if (worker.seen) |seen| if (std.mem.eql(u8, &seen, &generation)) return;
            const knew_all = worker.seen != null;
            worker.seen = generation;
            var there: core.profile.Inventory = .{};
            var iterator: profile_files.Iterator = .init(files, null);
            while (iterator.next()) |found| {
                const class = worker.read(found) orelse continue;
                const named: BootProfile.Named = .{ .version = found.version, .class = class };
                const summary: core.profile.Inventory.Summary = .of(&named, &worker.profile);
                if (!there.put(&summary)) break;
                const known = worker.inventory.find(found.version, found.key) orelse continue;
                if (knew_all and !std.meta.eql(known.*, summary)) worker.send(&named);
            }
            for (worker.inventory.slice()) |*known| {
                if (there.find(known.version_id, known.key) != null) continue;
                worker.world.send(.{ .published = .{
                    .version_id = known.version_id,
                    .key = known.key,
                    .document = &.{},
                } });
            }
            assert(there.count <= profile_files.count_max);
            worker.inventory = there;
            worker.world.onInventory(&worker.inventory);
        }

        /// Hands devices the contents of `profile` from now on.
        fn publish(worker: *Self, named: *const BootProfile.Named) void {
            assert(worker.inventory.count <= profile_files.count_max);
            if (worker.inventory.put(&.of(named, &worker.profile)))
                worker.world.onInventory(&worker.inventory);
            worker.send(named);
        }

        fn send(worker: *Self, named: *const BootProfile.Named) void {
            var out: [units.document_size_max]u8 = undefined;
            const document =
                worker.gpa.dupe(u8, worker.profile.document(&out)) catch return;
            assert(document.len <= units.document_size_max);
            worker.world.send(.{ .published = .{
                .version_id = named.version,
                .key = named.class.key,
                .document = document,
            } });
        }

        /// Reads a profile; one that cannot be used is dropped with a line in the log.
        fn read(worker: *Self, found: ProfileName) ?BootProfile.Class {
            const files = worker.world.files();
            return profile_files.read(files, found, &worker.profile, &worker.buffer) catch |err| {
                var name: profile_files.Name = undefined;
                if (err != error.NotFound) worker.world.log("The boot profile {s} {s}.", .{
                    profile_files.nameOf(found.version, found.key, &name),
                    profile_files.sentence(err),
                });
                return null;
            };
        }
    };
}
