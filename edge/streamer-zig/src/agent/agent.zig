//! Module `agent`: what an edge decides, with its input and output injected. `host` gives it the
//! real world, `sim` a fake one. It reads no clock and opens no socket or file itself, and it never
//! waits: what may wait (a disk, a thread) is asked of `Io` and answered by a later call.
//! docs/ARCHITECTURE.md says what belongs here.

const std = @import("std");

pub const catalogue = @import("catalogue.zig");
pub const device_address = @import("device_address.zig");
pub const dhcp = @import("dhcp.zig");
pub const io = @import("io.zig");
pub const private_images = @import("private_images.zig");
pub const mutants = @import("mutants.zig");
pub const order_pool = @import("order_pool.zig");
pub const profile_files = @import("profile/profile_files.zig");
pub const profile_worker = @import("profile/profile_worker.zig");
pub const profiles = @import("profile/profiles.zig");
pub const response = @import("response.zig");
pub const stream = @import("stream.zig");
pub const write_caches = @import("write_caches.zig");
pub const Kept = io.Kept;
pub const OpenResult = io.OpenResult;
pub const PromisePort = io.PromisePort;
pub const Port = io.Port;
pub const PowerHook = io.PowerHook;
pub const PowerJob = io.PowerJob;
pub const PowerResult = io.PowerResult;
pub const ProfileWorker = profile_worker.ProfileWorker;
pub const StoreErrors = @import("store_errors.zig");
pub const Report = io.Report;
pub const Updates = @import("updates.zig");

/// The parts of an edge over one `Io`, which `io.zig` describes.
pub fn Agent(comptime Io: type) type {
    comptime io.check(Io);
    return struct {
        pub const Boots = @import("boots.zig").Boots(Io);
        pub const Catalogue = catalogue.Catalogue(Io);
        pub const Dhcp = dhcp.Dhcp(Io);
        pub const HttpPaths = @import("http_paths.zig").HttpPaths(Io);
        pub const Peers = @import("peers.zig").Peers(Io);
        pub const Profiles = profiles.Profiles(Io);
        pub const Routers = @import("segment/routers.zig").Routers(Io);
        pub const Schedules = @import("schedules.zig").Schedules(Io);
        pub const Stream = stream.Stream(Io);
        pub const Tftp = @import("tftp.zig").Tftp(Io);
        pub const WriteCaches = write_caches.WriteCaches(Io);
    };
}

test {
    _ = @import("admission_test.zig");
    _ = @import("boots_test.zig");
    _ = @import("candidates_test.zig");
    _ = @import("cache_handover.zig");
    _ = @import("cache_layer_test.zig");
    _ = @import("cache_snapshot.zig");
    _ = @import("device_keys_test.zig");
    _ = @import("dhcp_test.zig");
    _ = @import("failover_test.zig");
    _ = @import("http_paths_test.zig");
    _ = @import("loader_texts_test.zig");
    _ = @import("peers_test.zig");
    _ = @import("profile/profiles_test.zig");
    _ = @import("segment/routers_test.zig");
    _ = @import("schedules_test.zig");
    _ = @import("session_boots.zig");
    _ = StoreErrors;
    _ = @import("stream_test.zig");
    _ = @import("tftp_test.zig");
    _ = Updates;
    _ = @import("updates_test.zig");
    _ = @import("version_openings_test.zig");
    _ = @import("versions/holdings_test.zig");
    _ = @import("write_caches_test.zig");
    std.testing.refAllDecls(@This());
}
