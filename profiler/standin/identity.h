// Who a card is: what CUDA, NVML and nvidia-smi say alike, so that what one names the others find.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace shard::standin {

/// `card`: its number among all (card.h). Where CUDA_VISIBLE_DEVICES names it, it has that name.
[[nodiscard]] std::array<unsigned char, 16> uuid_of(int card);
/// "GPU-7374616e-642d-696e-0000-000000000000".
[[nodiscard]] std::string uuid_text(int card);

/// Device 0 of domain 0 on a bus of its own.
[[nodiscard]] int pci_bus_of(int card);
/// "00000000:10:00.0"; of CUDA with four digits first.
[[nodiscard]] std::string pci_text(int card, int digits_of_domain);

/// The card of that name, in either way of writing; none where there is none.
[[nodiscard]] std::optional<int> card_with_uuid(std::string_view text);
[[nodiscard]] std::optional<int> card_with_pci(const char* text);

/// The first release of NVIDIA's driver for Linux that came with card().cuda_version (CUDA Toolkit's release notes).
[[nodiscard]] const char* driver_version();

}  // namespace shard::standin
