//! Which modules an initramfs needs to reach its root disk: the block device, the overlay, the
//! probe for network cards, the common network cards, local disks, and the file systems that a root
//! disk may have.

/// Without these, as modules or built in, no device boots.
pub const required = [_]Required{
    .{
        .name = "nbd",
        .option = "CONFIG_BLK_DEV_NBD",
        .purpose = "the streamed disk is an nbd device",
    },
    .{
        .name = "overlay",
        .option = "CONFIG_OVERLAY_FS",
        .purpose = "writes are kept in RAM above the read-only disk",
    },
    .{ .name = "af_packet", .option = "CONFIG_PACKET", .purpose = "DHCP needs raw packets" },
};

pub const Required = struct { name: []const u8, option: []const u8, purpose: []const u8 };

/// Included if the kernel has them.
pub const buses = [_][]const u8{
    "virtio_pci", "virtio_mmio", "hv_vmbus", "xen_platform_pci", "xhci_pci", "ehci_pci", "virtio_rng",
};

/// Network cards of desktops, thin clients, servers and virtual machines.
pub const network_cards = [_][]const u8{
    "virtio_net",   "e1000",        "e1000e",      "igb",       "igc",          "igbvf",
    "ixgbe",        "ixgbevf",      "i40e",        "iavf",      "ice",          "r8169",
    "8139cp",       "8139too",      "tg3",         "bnx2",      "bnx2x",        "bnxt_en",
    "b44",          "atlantic",     "alx",         "atl1",      "atl1c",        "atl1e",
    "atl2",         "sky2",         "skge",        "jme",       "forcedeth",    "via_rhine",
    "via_velocity", "pcnet32",      "ne2k_pci",    "e100",      "mlx4_en",      "mlx5_core",
    "ena",          "gve",          "vmxnet3",     "hv_netvsc", "xen_netfront", "mana",
    "amd_xgbe",     "stmmac_pci",   "dwmac_intel", "lan743x",   "bcmgenet",     "macb",
    "r8152",        "ax88179_178a", "asix",        "cdc_ether", "cdc_ncm",      "smsc95xx",
    "lan78xx",      "realtek",      "broadcom",    "marvell",   "smsc",
};

/// For the device's key (docs/decisions/0026-device-identity.md), where they are not built in.
pub const tpms = [_][]const u8{ "tpm_tis", "tpm_crb", "tpm_tis_spi", "tpm_tis_i2c" };

/// For a local disk that holds a write cache (docs/guides/write-caches.md).
pub const local_disks = [_][]const u8{
    "virtio_blk", "virtio_scsi", "ahci", "ata_piix", "nvme", "sd_mod", "hv_storvsc", "vmw_pvscsi",
};

/// For a root disk; the kernel loads them on mount.
pub const file_systems = [_][]const u8{ "ext4", "xfs", "btrfs", "squashfs", "erofs", "f2fs" };
