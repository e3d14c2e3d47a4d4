//! What is known of a boot's device, for the report: by its first packets, and by its own word.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const DeviceNetwork = @import("../stream/server/step.zig").DeviceNetwork;
const Network = @import("network.zig");
const assert = std.debug.assert;

/// The first program that the device was told to load.
pub const Program = struct { set: base.UntrustedText, file: base.UntrustedText };

/// What the device says that it is (STREAM.md, MACHINE).
pub const Machine = struct {
    cpu_count: u16,
    memory_mib: u32,
    /// PCI ids of its network card; 0: it has none.
    card_vendor: u16 = 0,
    card_device: u16 = 0,
    /// 0: it is not known.
    link_mbit: u32 = 0,
    driver: base.UntrustedText = .empty,
    /// Its vendor and model.
    model: base.UntrustedText = .empty,

    fn of(said: *const stream.Machine) Machine {
        return .{
            .cpu_count = said.cpu_count,
            .memory_mib = said.memory_mib,
            .card_vendor = said.card_vendor,
            .card_device = said.card_device,
            .link_mbit = said.link_mbit,
            .driver = .init(said.driverName()),
            .model = .init(said.modelName()),
        };
    }
};

pub const Facts = struct {
    machine_id: ?base.Uuid = null,
    client_arch: ?u16 = null,
    vendor_class: base.UntrustedText = .empty,
    user_class: base.UntrustedText = .empty,
    ip: ?base.Ip4 = null,
    /// The address is the device's; otherwise only a packet says so.
    is_ip_confirmed: bool = false,
    /// IP packet size of the newest read's fragments, in bytes.
    mtu: ?u16 = null,
    cipher: ?stream.Cipher = null,
    program: ?Program = null,
    machine: ?Machine = null,
    network: ?Network = null,

    /// The same for what the device measured of the network in a session.
    pub fn onNetwork(facts: *Facts, told: *const DeviceNetwork) bool {
        const said = &told.network;
        assert(said.isValid());
        if (facts.network) |*known| return known.take(told.session_id, said, told.passed);
        facts.network = .init(told.session_id, said, told.passed);
        return true;
    }

    /// Returns whether that is new.
    pub fn onMachine(facts: *Facts, said: *const stream.Machine) bool {
        assert(said.cpu_count > 0);
        const machine = Machine.of(said);
        if (facts.machine) |*known| if (std.meta.eql(known.*, machine)) return false;
        facts.machine = machine;
        return true;
    }
};

test "what a device says that it is replaces what it said before, and is new only once" {
    const testing = std.testing;
    var facts: Facts = .{};
    const said: stream.Machine =
        .{ .cpu_count = 4, .memory_mib = 100, .driver = stream.Machine.paddedDriver("e1000e") };
    try testing.expect(facts.onMachine(&said));
    try testing.expectEqual(4, facts.machine.?.cpu_count);
    try testing.expectEqualStrings("e1000e", facts.machine.?.driver.slice());
    try testing.expect(!facts.onMachine(&said));
    try testing.expect(facts.onMachine(&.{ .cpu_count = 5, .memory_mib = 100 }));
    try testing.expectEqualStrings("", facts.machine.?.driver.slice());
}
