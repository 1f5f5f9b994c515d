// PNG in and out, through libpng.
#include "viewer/sink/picture.h"

#include <png.h>

#include <csetjmp>
#include <cstring>

#include "traces/base/output_file.h"
#include "traces/base/read_file.h"

namespace shard::view {
namespace {

constexpr Bytes kLargestFile{256 << 20};

std::vector<std::uint8_t> rgb_of(const Picture& picture) {
  std::vector<std::uint8_t> rgb(picture.rgba.size() / 4 * 3);
  for (std::size_t i = 0, j = 0; i + 3 < picture.rgba.size(); i += 4, j += 3)
    std::memcpy(rgb.data() + j, picture.rgba.data() + i, 3);
  return rgb;
}

void append(png_structp png, png_bytep data, png_size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), size);
}

/// False where libpng fails, which it says by longjmp: nothing here that has a destructor lives across it.
bool encode(const std::vector<std::uint8_t>& rgb, int width, int height, PngEffort effort, std::string& bytes) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr || setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_write_struct(&png, &info);
    return false;
  }
  png_set_write_fn(png, &bytes, append, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8, PNG_COLOR_TYPE_RGB,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  // Flat areas and text repeat as they are; filters, meant for photographs, hide that.
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_set_compression_level(png, effort == PngEffort::fast ? 3 : 9);
  png_write_info(png, info);
  for (int row = 0; row < height; ++row)
    png_write_row(png, rgb.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(width) * 3);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return true;
}

}  // namespace

Result<std::string> png_bytes(const Picture& picture, PngEffort effort) {
  std::string bytes;
  const std::vector<std::uint8_t> rgb = rgb_of(picture);
  if (!encode(rgb, picture.width, picture.height, effort, bytes))
    return Error{Errc::internal, "the picture cannot be encoded", "", ""};
  return bytes;
}

Result<void> write_png(const Picture& picture, const std::filesystem::path& path, PngEffort effort) {
  const Result<std::string> bytes = png_bytes(picture, effort);
  if (!bytes) return bytes.error();
  return write_file(path, *bytes);
}

Result<Picture> read_png(const std::filesystem::path& path) {
  const Result<std::string> bytes = read_file(path, "picture", kLargestFile);
  if (!bytes) return bytes.error();
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, bytes->data(), bytes->size()) == 0)
    return Error{Errc::malformed, std::string("not a PNG: ") + image.message, path.string(), ""};
  image.format = PNG_FORMAT_RGBA;
  Picture picture(static_cast<int>(image.width), static_cast<int>(image.height));
  if (png_image_finish_read(&image, nullptr, picture.rgba.data(), 0, nullptr) == 0)
    return Error{Errc::malformed, std::string("a damaged PNG: ") + image.message, path.string(), ""};
  return picture;
}

}  // namespace shard::view
